"""Whether a database has been prepared for the processes that need it."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from stega.database.pooling import is_pooled
from stega.pgque import client

TABLES = {"default": "stega_sharedsetting", "jobs": "django_q_ormq"}


def require_prepared(alias: str) -> None:
    """Raise ImproperlyConfigured, saying what to do, when tables or the event log are missing, or not as settings say.

    Raises OperationalError when the database cannot be reached.
    """
    if alias == "events":
        require_known_pooler()
        _require_event_log()
    elif TABLES[alias] not in connections[alias].introspection.table_names():
        remedy = f"Run: python manage.py migrate --database={alias}"
        raise ImproperlyConfigured(f"the {alias} database has no tables. {remedy}")


def require_known_pooler() -> None:
    """Raise ImproperlyConfigured when `events` is behind a pooler that settings do not name.

    It would refuse the settings of a session, or keep a session's locks for others. Raises OperationalError when the
    database cannot be reached.
    """
    if not settings.EVENTS_POOLED and is_pooled("events"):
        remedy = "Set EVENTS_LISTEN_DATABASE_URL to its direct address, or EVENTS_POOLED=1"
        raise ImproperlyConfigured(f"EVENTS_DATABASE_URL leads through a pooler. {remedy}.")


def _require_event_log() -> None:
    remedy = "Run: python manage.py pgque_bootstrap"
    if client.version() is None:
        raise ImproperlyConfigured(f"the event log is not installed on the events database. {remedy}")
    if settings.PGQUE_QUEUE not in {row["queue_name"] for row in client.queue_info()}:
        raise ImproperlyConfigured(f"the event log has no queue {settings.PGQUE_QUEUE}. {remedy}")

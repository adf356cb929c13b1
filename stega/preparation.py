"""Whether a database has been prepared for the processes that need it."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from stega.pgque import client

TABLES = {"default": "stega_sharedsetting", "jobs": "django_q_ormq"}


def require_prepared(alias: str) -> None:
    """Raise ImproperlyConfigured, saying which command to run, when tables or the event log are missing.

    Raises OperationalError when the database cannot be reached.
    """
    if alias == "events":
        _require_event_log()
    elif TABLES[alias] not in connections[alias].introspection.table_names():
        remedy = f"Run: python manage.py migrate --database={alias}"
        raise ImproperlyConfigured(f"the {alias} database has no tables. {remedy}")


def _require_event_log() -> None:
    remedy = "Run: python manage.py pgque_bootstrap"
    if client.version() is None:
        raise ImproperlyConfigured(f"the event log is not installed on the events database. {remedy}")
    if settings.PGQUE_QUEUE not in {row["queue_name"] for row in client.queue_info()}:
        raise ImproperlyConfigured(f"the event log has no queue {settings.PGQUE_QUEUE}. {remedy}")

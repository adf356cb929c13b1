"""What a web process does before its first request."""

import logging

from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections

from stega.database import patience
from stega.database.outages import is_outage
from stega.processes.startup import words_of
from stega.wording.text import told

logger = logging.getLogger(__name__)

NO_STATIC_FILES = "stega.W002"
REFUSES = 4
"""The exit code of a worker on which gunicorn gives up, instead of starting another for ever."""


def require_servable() -> None:
    """Raise ImproperlyConfigured with what the system checks hold against serving pages: errors, and missing style."""
    for message in run_checks():
        if message.id == NO_STATIC_FILES or (message.is_serious() and not message.is_silenced()):
            raise ImproperlyConfigured(f"{message.id}: {message.msg} {message.hint or ''}".strip())


def end_statements() -> None:
    """Let the servers themselves end what a request of this process has given up."""
    from stega.database.base import DatabaseWrapper  # needs the settings, as all that knows Django's databases

    DatabaseWrapper.statement_seconds = patience.server_limit()


def share_settings() -> None:
    """Let the web be compared with the other processes; not when `default` is away, since pages can say that.

    Leaves no connection that a fork would share. Raises ImproperlyConfigured as fingerprint.compare does.
    """
    from stega.processes import fingerprint  # needs the apps, which wsgi.py sets up first

    try:
        fingerprint.compare("web")
    except (DatabaseError, InterfaceError) as error:
        why = words_of(error) if is_outage(error) else told(error)
        logger.warning("Settings are not compared with those of other processes: %s", why)
    finally:
        connections.close_all()

"""What a command says when it cannot start: one line with the remedy, and an exit code that is not 0."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, OperationalError, connections

from stega import env, logs
from stega.database import patience

logger = logging.getLogger(__name__)

VARIABLES = {"default": "DATABASE_URL", "jobs": "JOBS_DATABASE_URL", "events": "EVENTS_DATABASE_URL"}

NO_STATIC_FILES = "stega.W002"
WEB_REFUSES = 4
"""The exit code of a worker on which gunicorn gives up, instead of starting another for ever."""


@contextmanager
def refusing_clearly(exit_code: int = 1) -> Iterator[None]:
    """Turn a wrong setting or an unreachable database into one line on stderr and an exit code that is not 0."""
    try:
        yield
    except ImproperlyConfigured as error:
        refuse(str(error), exit_code)
    except (OperationalError, InterfaceError) as error:
        refuse(unreachable(error), exit_code)


def require_web() -> None:
    """Raise ImproperlyConfigured with what the system checks hold against serving pages: errors, and missing style."""
    for message in run_checks():
        if message.id == NO_STATIC_FILES or (message.is_serious() and not message.is_silenced()):
            raise ImproperlyConfigured(f"{message.id}: {message.msg} {message.hint or ''}".strip())


def end_statements_of_web() -> None:
    """Let the servers themselves end what a request of this process has given up."""
    from stega.database.base import DatabaseWrapper  # needs the settings, as all that knows Django's databases

    DatabaseWrapper.statement_seconds = patience.server_limit()


def share_settings_of_web() -> None:
    """Let the web be compared with the other processes; not when `default` is away, since pages can say that.

    Leaves no connection that a fork would share. Raises ImproperlyConfigured as fingerprint.compare does.
    """
    from stega.processes import fingerprint  # needs the apps, which wsgi.py sets up first

    try:
        fingerprint.compare("web")
    except (DatabaseError, InterfaceError) as error:
        logger.warning("Settings are not compared with those of other processes: %s", _words(error))
    finally:
        connections.close_all()


def refuse(message: str, exit_code: int = 1) -> None:
    if env.text("STEGA_LOG_FORMAT") == "json":
        message = logs.json_line("CRITICAL", __name__, message)
    else:
        message = f"stega: {message}"
    print(message, file=sys.stderr)  # noqa: T201 - this is the command's own voice
    sys.exit(exit_code)


def unreachable(error: Exception) -> str:
    """The line for a database that does not answer: which one, the server's own words, what to do."""
    words = _words(error)
    failing = {alias: said for alias in VARIABLES if (said := _try(alias))}
    if not failing:
        return f"a database refused the command: {words}"
    alias = next((alias for alias, said in failing.items() if said == words), next(iter(failing)))
    return f"the {alias} database cannot be reached: {words}. Start its server, or check {VARIABLES[alias]}."


def _try(alias: str) -> str:
    """What connecting to the database fails with; empty when it does not fail."""
    try:
        connections[alias].close()
        connections[alias].ensure_connection()
    except (OperationalError, InterfaceError) as error:
        return _words(error)
    return ""


def _words(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".?")

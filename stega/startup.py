"""What a command says when it cannot start: one line with the remedy, and an exit code that is not 0."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured
from django.db import InterfaceError, OperationalError, connections

VARIABLES = {"default": "DATABASE_URL", "jobs": "JOBS_DATABASE_URL", "events": "EVENTS_DATABASE_URL"}


@contextmanager
def refusing_clearly() -> Iterator[None]:
    """Turn a wrong setting or an unreachable database into one line on stderr and exit code 1."""
    try:
        yield
    except ImproperlyConfigured as error:
        refuse(str(error))
    except (OperationalError, InterfaceError) as error:
        refuse(unreachable(error))


def refuse(message: str) -> None:
    print(f"stega: {message}", file=sys.stderr)  # noqa: T201 - this is the command's own voice
    sys.exit(1)


def unreachable(error: Exception) -> str:
    """The line for a database that does not answer: which one, the server's own words, what to do."""
    alias = next((alias for alias in VARIABLES if not _answers(alias)), None)
    words = " ".join(str(error).split())
    if alias is None:
        return f"a database refused the command: {words}"
    return f"the {alias} database cannot be reached: {words}. Start its server, or check {VARIABLES[alias]}."


def _answers(alias: str) -> bool:
    try:
        connections[alias].close()
        connections[alias].ensure_connection()
    except (OperationalError, InterfaceError):
        return False
    return True

"""What a command says when it cannot start: one line with the remedy, and an exit code that is not 0."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured
from django.db import InterfaceError, OperationalError, connections

from stega import env, logs
from stega.database.mismatch import OtherSchema

VARIABLES = {"default": "DATABASE_URL", "jobs": "JOBS_DATABASE_URL", "events": "EVENTS_DATABASE_URL"}


@contextmanager
def refusing_clearly(exit_code: int = 1) -> Iterator[None]:
    """Turn a wrong setting or an unreachable database into one line on stderr and an exit code that is not 0.

    Where nobody reads what the command says any more, as behind `| head`, it ends without a word.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python fails once more at its end
        sys.exit(128 + signal.SIGPIPE)
    except ImproperlyConfigured as error:
        refuse(str(error), exit_code)
    except OtherSchema as error:
        refuse(words_of(error), exit_code)
    except (OperationalError, InterfaceError) as error:
        refuse(unreachable(error), exit_code)


def refuse(message: str, exit_code: int = 1) -> None:
    if env.text("STEGA_LOG_FORMAT") == "json":
        message = logs.json_line("CRITICAL", __name__, message)
    else:
        message = f"stega: {message}"
    print(message, file=sys.stderr)  # noqa: T201 - this is the command's own voice
    sys.exit(exit_code)


def unreachable(error: Exception) -> str:
    """The line for a database that does not answer: which one, the server's own words, what to do."""
    words = words_of(error)
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
        return words_of(error)
    return ""


def words_of(error: Exception) -> str:
    """The error's words as a part of a sentence."""
    return " ".join(str(error).split()).rstrip(".?")

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg


class EmbeddedError(Exception):
    """The embedded PostgreSQL cannot be used; the message is one line that says why and what to do."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn the errors of files, programs and the server into one line."""
    try:
        yield
    except (OSError, subprocess.SubprocessError, psycopg.Error) as error:
        words = " ".join(str(error).split())
        raise EmbeddedError(f"The embedded PostgreSQL cannot be used: {words}") from error


def reason(output: bytes) -> str:
    """The line of a PostgreSQL log that says what went wrong."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    telling = [line[found.start() :] for line in lines if (found := re.search(r"(FATAL|PANIC|error):", line))]
    return (telling or lines or ["no output"])[-1]

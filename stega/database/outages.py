"""Which errors mean that a database is away, rather than that somebody made a mistake."""

from django.db import DatabaseError, InterfaceError, OperationalError

READ_ONLY = "25006"
"""SQLSTATE of a server that takes no writes: a fail-over is under way."""

INTERNAL = "XX000"
"""SQLSTATE of a server that is at a loss, as when a function is made anew while a session runs it."""

LIMITS = "54"
"""SQLSTATE class of a statement that is too much for the server: it will be too much again."""


def is_outage(error: BaseException) -> bool:
    """True for a lost connection, a server that is going, gone or at a loss, a read-only period and a schema of
    another version (mismatch.OtherSchema): try again later.

    False for mistakes, data errors among them: trying again would fail again.
    """
    sqlstate = getattr(error.__cause__, "sqlstate", None) or ""
    if isinstance(error, (OperationalError, InterfaceError)):
        return not sqlstate.startswith(LIMITS)
    return isinstance(error, DatabaseError) and sqlstate in (READ_ONLY, INTERNAL)

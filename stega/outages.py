"""Which errors mean that a database is away, rather than that somebody made a mistake."""

from django.db import DatabaseError, InterfaceError, OperationalError

READ_ONLY = "25006"
"""SQLSTATE of a server that takes no writes: a fail-over is under way."""


def is_outage(error: BaseException) -> bool:
    """True for a lost connection, a server that is going or gone, and a read-only period: try again later.

    False for mistakes, data errors among them: trying again would fail again.
    """
    if isinstance(error, (OperationalError, InterfaceError)):
        return True
    return isinstance(error, DatabaseError) and getattr(error.__cause__, "sqlstate", None) == READ_ONLY

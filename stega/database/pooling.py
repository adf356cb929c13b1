"""A pooler before a database, which gives each transaction another session."""

from django.db import connections


def is_pooled(alias: str) -> bool:
    """Whether a pooler stands between: it tells a client of another backend than the one that answers."""
    with connections[alias].cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        (pid,) = cursor.fetchone()
    return bool(connections[alias].connection.info.backend_pid != pid)

"""A pooler before a database, which gives each transaction another session."""

from typing import Any

import psycopg
from django.db import connections

POOLED = " (pooled)"
"""After a process's name in sessions of a pool, which tell who had them last and not who lives."""


def is_pooled(alias: str) -> bool:
    connection: Any = connections[alias]
    connection.ensure_connection()
    with connection.wrap_database_errors:
        return is_of_a_pooler(connection.connection)


def is_of_a_pooler(session: psycopg.Connection[Any]) -> bool:
    """Whether a pooler stands between: it tells a client of another backend than the one that answers."""
    return session.execute("select pg_backend_pid()").fetchone() != (session.info.backend_pid,)

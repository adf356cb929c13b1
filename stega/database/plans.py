"""Plans that a session keeps, for what is said again and again: the server takes longer to make than to follow them."""

from typing import Any

import psycopg
from django.db import connections

from stega.database.pooling import is_of_a_pooler

KEPT_AFTER = 5
"""How often a session is asked the same before it keeps the plan."""


def let_be_kept(session: psycopg.Connection[Any]) -> None:
    """Not through a pooler, which hands a session and the plans in it on to others."""
    if not is_of_a_pooler(session):
        session.prepare_threshold = KEPT_AFTER


def cursor(alias: str) -> Any:
    """A cursor whose plans are kept; an ordinary one where none may be.

    PostgreSQL gets the values apart from the statement, which names the types that cannot be seen from the place of a
    value. What it returns must be of types that no migration changes: the server refuses an old plan for a new type.
    """
    connection: Any = connections[alias]
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    if connection.connection.prepare_threshold is None:
        return connection.cursor()
    make = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    return make(psycopg.Cursor(connection.connection))

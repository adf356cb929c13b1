"""A statement that fails since the database's schema is of another version than this process: nobody's fault.

New processes start before `migrate` has run, and old ones go on after it: what they do not find comes with the
migration, or with their restart.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import psycopg
from django.db import DatabaseError, OperationalError, ProgrammingError, connections
from django.db.utils import DatabaseErrorWrapper

from stega.database.outages import is_outage

DOUBTFUL = {
    "42P01",  # no such table
    "42703",  # no such column
    "42883",  # no such function
    "3F000",  # no such schema
    "42704",  # no such type or other object
    "42P10",  # no such unique index for `on conflict`
    "23502",  # a column that wants a value from those who do not know it
}
"""SQLSTATEs of which nobody can tell by themselves whether the statement is wrong or the schema is another."""

differences: dict[str, Callable[[], str]] = {}
"""By alias: in which way its schema is another than this process's, and what to do; empty when it is not.

Asked through `connections[alias]`, after an error alone. stega.installation.agreement puts them here.
"""


@contextmanager
def undoubted() -> Iterator[None]:
    """Within it this process takes every error for the statement's fault: for what changes the schema itself."""
    kept = dict(differences)
    differences.clear()
    try:
        yield
    finally:
        differences.update(kept)


class OtherSchema(OperationalError, ProgrammingError):
    """An outage of its own kind: the statement suits a schema that the database has not got yet, or has no more.

    Its words say which database that is and what to do, and quote no row.
    """


class ErrorWrapper(DatabaseErrorWrapper):
    """Django's, but that a doubtful error is OtherSchema where the schema is another. Looks after such an error alone.

    Raises an outage when the database cannot be asked: then nobody knows whose fault it was.
    """

    wrapper: Any

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc_value, psycopg.Error) and (difference := _difference(self.wrapper, exc_value)):
            self.wrapper.errors_occurred = True
            words = f"{difference} ({exc_value.diag.message_primary})"
            raise OtherSchema(words).with_traceback(traceback) from exc_value
        super().__exit__(exc_type, exc_value, traceback)


def _difference(connection: Any, error: psycopg.Error) -> str:
    look = differences.get(connection.alias)
    if look is None or connection.is_beside or error.sqlstate not in DOUBTFUL:
        return ""
    try:
        with _beside(connection):
            return look()
    except DatabaseError as error:
        if is_outage(error):
            raise
        return ""


@contextmanager
def _beside(connection: Any) -> Iterator[None]:
    """Within it this thread asks the database through a session of its own: the other's transaction has failed."""
    alias = connection.alias
    usual, beside = connections[alias], connection.copy()
    beside.is_beside = True
    connections[alias] = beside
    try:
        yield
    finally:
        connections[alias] = usual
        beside.close()

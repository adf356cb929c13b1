"""psycopg, whose connections wait no longer than the thread's patience."""

import time
from types import SimpleNamespace
from typing import Any

import psycopg

from stega.database import patience

LATE = "the database did not answer in time"


class Connection(psycopg.Connection[Any]):
    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """As psycopg's. At the end of the thread's patience the connection is closed: what became of it is unknown."""
        left = patience.left()
        if left is None:
            return super().wait(gen, interval, timeout)
        try:
            with patience.waits.one():
                return self._wait_at_most(left, gen, interval)
        except TimeoutError:
            self.pgconn.finish()
            raise psycopg.OperationalError(LATE) from None

    def _wait_at_most(self, seconds: float, gen: Any, interval: float) -> Any:
        """psycopg has no public name for the error with which it stops waiting; it comes from no server."""
        if not seconds:
            raise TimeoutError
        begin = time.monotonic()
        try:
            return super().wait(gen, interval, seconds)
        except psycopg.OperationalError as error:
            if error.sqlstate or time.monotonic() - begin < seconds:
                raise
            raise TimeoutError from None


def connect(*args: Any, **options: Any) -> Connection:
    """As psycopg's, which waits `connect_timeout` at most; not at all when the thread's patience is at its end."""
    left = patience.left()
    if left is None:
        return Connection.connect(*args, **options)
    if not left:
        raise psycopg.OperationalError(LATE)
    try:
        with patience.waits.one():
            return _connect_in_time(*args, **options)
    except TimeoutError as error:
        raise psycopg.OperationalError(LATE) from error.__cause__


def _connect_in_time(*args: Any, **options: Any) -> Connection:
    try:
        return Connection.connect(*args, **options)
    except psycopg.errors.ConnectionTimeout as error:
        raise TimeoutError from error


Database = SimpleNamespace(**{**vars(psycopg), "connect": connect})
"""The module as Django's backend uses it."""

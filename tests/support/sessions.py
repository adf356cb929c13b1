"""Several database sessions in one test: steps that may block, and waiting until they do."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, LiteralString

import psycopg

from tests.support.waiting import wait_until


class Session:
    """A connection whose statements may be sent off in the background; rolled back and closed at the end."""

    def __init__(self, url: str, *, autocommit: bool = False) -> None:
        self.connection = psycopg.connect(url, autocommit=autocommit)
        self._url = url
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.connection.cancel()
        self._pool.shutdown()
        self.connection.close()

    def rows(self, sql: LiteralString, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and wait for its rows."""
        cursor = self.connection.execute(sql, params or None)
        return cursor.fetchall() if cursor.description else []

    def value(self, sql: LiteralString, params: Sequence[Any] = ()) -> Any:
        """Run a statement and wait for the first field of its first row."""
        return self.rows(sql, params)[0][0]

    def start(self, sql: LiteralString, params: Sequence[Any] = ()) -> "Future[list[tuple[Any, ...]]]":
        """Send a statement off; its rows or its error come with the future."""
        return self._pool.submit(self.rows, sql, params)

    def start_blocked(self, sql: LiteralString, params: Sequence[Any] = ()) -> "Future[list[tuple[Any, ...]]]":
        """Send a statement off and return when it waits for another session's lock."""
        future = self.start(sql, params)
        with psycopg.connect(self._url, autocommit=True) as watcher:
            pid = self.connection.info.backend_pid
            query = "select cardinality(pg_blocking_pids(%s)) > 0"
            wait_until(lambda: future.done() or _first(watcher, query, pid), timeout=10)
        assert not future.done(), f"did not block: {future.exception() or future.result()}"
        return future

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()


def _first(connection: psycopg.Connection, sql: LiteralString, *params: Any) -> Any:
    row = connection.execute(sql, params).fetchone()
    return row[0] if row else None

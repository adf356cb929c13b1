"""The wake-up by NOTIFY: a hint that may be lost; polling is the truth."""

from typing import Any

import psycopg


class Listener:
    """LISTENs on the queue's channel; ends with the connection."""

    def __init__(self, queue: str, connection: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"listen {connection.ops.quote_name('pgque_' + queue)}")
        self._connection: psycopg.Connection[Any] = connection.connection
        self._heard = False
        self._connection.add_notify_handler(self._hear)

    def fileno(self) -> int:
        return self._connection.fileno()

    def pending(self) -> bool:
        """Whether a tick was announced since the last call; True as well when the connection is gone.

        Announcements that arrived beside a query's answer were heard by the handler and left nothing to select on.
        """
        try:
            self._connection.pgconn.consume_input()
            while (note := self._connection.pgconn.notifies()) is not None:
                self._heard = bool(note)
        except psycopg.Error:
            return True
        heard, self._heard = self._heard, False
        return heard

    def _hear(self, note: psycopg.Notify) -> None:
        self._heard = True

"""Signs of life of a group's member, from a thread and a connection of their own, so that a slow handler gives them."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, connections

from stega.pgque import client, query

logger = logging.getLogger(__name__)


class Toucher:
    """While a batch is held, touches the member four times per dead interval.

    Not for ever: when the member has been in one message for `patience`, it falls silent, and another member may take
    the batch over. A touch that fails is tried again at the next beat; the connection opens with the first one.
    """

    def __init__(
        self,
        queue: str,
        consumer: str,
        member: str,
        dead_interval: timedelta,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.names = (queue, consumer, member)
        self.every = dead_interval.total_seconds() / 4
        self.patience = patience
        self.clock = clock
        self._moved_at: float | None = None
        self._silent = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="toucher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Touch no more. Waits only a moment for a touch that hangs: the thread does not delay the process's end."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=1)

    def moved(self) -> None:
        """The member begins with a batch, or with its next message."""
        self._moved_at = self.clock()

    def rest(self) -> None:
        """The member holds no batch."""
        self._moved_at = None

    def beat(self) -> None:
        """Touch the member if it holds a batch and has not been stuck for too long."""
        moved_at = self._moved_at
        if moved_at is None:
            return
        is_stuck = self.clock() - moved_at > self.patience
        if is_stuck and not self._silent:
            logger.error(
                "%s has been in one message for %g s and gives no more signs of life", self.names[1], self.patience
            )
        self._silent = is_stuck
        if not is_stuck:
            client.touch_subconsumer(*self.names)

    def _work(self) -> None:
        connection = connections[query.ALIAS]
        try:
            while not self._ended.wait(self.every):
                try:
                    self.beat()
                except (DatabaseError, InterfaceError) as error:
                    logger.warning("No sign of life of %s: %s", self.names[1], " ".join(str(error).split()))
                    connection.close()
        finally:
            connection.close()

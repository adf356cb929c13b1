"""One of several instances leads: a session advisory lock on `events`, gone with its holder's connection."""

import logging
import time

from django.conf import settings

from stega.pgque import session

logger = logging.getLogger(__name__)


class Leadership:
    """Held by at most one connection of the database; a stand-by asks again and takes over when the holder dies.

    `terms` counts how often this process came to lead.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.terms = 0
        self._holding: object = None
        self._waiting = False
        self._seen_at = 0.0

    def held(self) -> bool:
        """Whether this process leads, trying to take the lead when it does not. Behind a pooler alone, all lead."""
        connection = session.connection()
        if connection is None:
            self.terms = 1
            return True
        if self._holding is not None and self._holding is connection.connection:
            self._look_after_lock()
            return True
        with connection.cursor() as cursor:
            cursor.execute("select pg_try_advisory_lock(hashtext('stega'), hashtext(%s))", [self.name])
            (locked,) = cursor.fetchone()
        self._holding = connection.connection if locked else None
        self.terms += bool(locked)
        self._say(locked)
        return bool(locked)

    def _look_after_lock(self) -> None:
        """Raise OperationalError within STANDBY_SECONDS when the lock went with a connection of its own."""
        if time.monotonic() - self._seen_at > settings.STANDBY_SECONDS:
            session.require_alive()
            self._seen_at = time.monotonic()

    def _say(self, locked: bool) -> None:
        if locked:
            logger.info("%s leads", self.name)
        elif not self._waiting:
            logger.info("%s stands by: another instance leads", self.name)
        self._waiting = not locked

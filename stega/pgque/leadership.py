"""One of several instances leads: a session advisory lock on `events`, gone with its holder's connection."""

import logging
import math
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connections

from stega.pgque import session
from stega.pgque.query import ALIAS

logger = logging.getLogger(__name__)

_NOTE_TERM = "select pg_advisory_lock_shared(hashtext('stega term'), extract(epoch from clock_timestamp())::int)"
"""A second lock, shared by whoever began to lead in that second: its number is the moment."""

_LEADS = """
    lead.locktype = 'advisory' and lead.granted
        and lead.database = (select oid from pg_database where datname = current_database())
        and lead.classid::bigint = (hashtext('stega')::bigint & 4294967295)
        and lead.objid::bigint = (hashtext(%(name)s)::bigint & 4294967295)
"""
"""The lock of whoever leads, in pg_locks."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The database session of the instance that leads."""

    pid: int
    address: str | None
    since: datetime


def holder(name: str) -> Holder | None:
    """Who leads and since when, as the locks on `events` tell; None when nobody does."""
    statement = f"""
        select lead.pid, host(activity.client_addr), to_timestamp(max(term.objid::bigint))
        from pg_locks lead
        join pg_locks term on term.pid = lead.pid and term.locktype = 'advisory' and term.database = lead.database
            and term.classid::bigint = (hashtext('stega term')::bigint & 4294967295)
        left join pg_stat_activity activity on activity.pid = lead.pid
        where {_LEADS}
        group by lead.pid, activity.client_addr
    """
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(statement, {"name": name})
        row = cursor.fetchone()
    return Holder(*row) if row else None


class Leadership:
    """Held by at most one connection of the database; a stand-by asks again and takes over when the holder dies.

    So it does when the holder says nothing for `patience` seconds, as a process that was frozen: its session is ended.
    `terms` counts how often this process came to lead.
    """

    def __init__(self, name: str, *, patience: float = math.inf) -> None:
        self.name = name
        self.patience = patience
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
            if locked:
                cursor.execute(_NOTE_TERM)
            elif self.patience < math.inf:
                self._depose_silent(cursor)
        self._holding = connection.connection if locked else None
        self.terms += bool(locked)
        self._say(locked)
        return bool(locked)

    def _depose_silent(self, cursor: Any) -> None:
        """End the session of a leader of this role that does nothing; to be called when another has the lead."""
        now = time.monotonic()
        if now - self._seen_at < self.patience / 4:
            return
        self._seen_at = now
        statement = f"""
            with silent as materialized (  -- a condition beside the others might be looked at first, for anybody
                select lead.pid from pg_locks lead join pg_stat_activity activity using (pid)
                where {_LEADS} and activity.usename = current_user and activity.state like 'idle%%'
                    and clock_timestamp() - activity.state_change > %(patience)s
            )
            select pid, pg_terminate_backend(pid) from silent
        """
        cursor.execute(statement, {"name": self.name, "patience": timedelta(seconds=self.patience)})
        for pid, _ in cursor.fetchall():
            logger.warning("%s: the leader did nothing for %g s, its session %d ends", self.name, self.patience, pid)

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

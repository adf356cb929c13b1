"""The ticker: makes batches out of events, brings retries back, reclaims space."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeVar

from django.conf import settings
from django.db import DatabaseError

from stega.database.outages import is_outage
from stega.pgque import client, session
from stega.pgque.leadership import Leadership
from stega.pgque.neglect import rotation_blockers, silent_members
from stega.processes.process import Process

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

ACTIVE_SECONDS = 2.0
"""How long after the last tick the queues count as active and are looked at at the quick pace."""


@dataclass(slots=True)
class Duty:
    name: str
    what: Callable[[], object]
    every: Callable[[], float]
    due_at: float = 0.0

    def schedule(self, now: float) -> None:
        """Keep the rhythm of the due times, unless a whole period was missed."""
        every = self.every()
        self.due_at = (self.due_at if now - self.due_at < every else now) + every


class Ticker(Process):
    """Runs each duty when it is due, each in its own committed transaction. Start it as often as you like: one leads.

    Everything due is due at the start, so that `--once` means each duty once. A duty may be repeated or missed at any
    point without harm: the next round does it. What the engine refuses is told once and tried again with the next
    round, and holds up neither the other duties nor, where the engine lets one choose, the other queues.
    """

    name = "pgque_ticker"
    aliases = ("events",)

    def __init__(self, *, interval: float | None = None, idle_interval: float | None = None) -> None:
        super().__init__(interval=interval or settings.PGQUE_TICK_SECONDS)
        self.idle_interval = max(idle_interval or settings.PGQUE_IDLE_TICK_SECONDS, self.interval)
        self.ticks = 0
        self._active_until = 0.0
        patience = settings.TICKER_DEAD_SECONDS + self.idle_interval
        self._leadership = Leadership("ticker", patience=patience)
        self._told: dict[str, str] = {}
        self._duties = [
            Duty("tick", self._tick, self._pace),
            Duty("retries", self._return_retries, lambda: settings.PGQUE_RETRY_SECONDS),
            Duty("rotation", self._rotate_step1, lambda: settings.PGQUE_MAINTENANCE_SECONDS),
            Duty("rotation, step 2", self._rotate_step2, lambda: settings.PGQUE_ROTATE_SECONDS),
            Duty("groups", self._remove_silent_members, lambda: settings.PGQUE_MAINTENANCE_SECONDS),
        ]

    def describe(self) -> str:
        return f"tick each {self.interval * 1000:g} ms while events flow, {self.idle_interval * 1000:g} ms when idle"

    def setup(self) -> None:
        session.reset()

    def step(self) -> bool:
        if not self._leadership.held():
            return False
        for duty in self._duties:
            if duty.due_at <= self.clock() and not self.stopping:
                self._try(duty.name, duty.what)
                duty.schedule(self.clock())
        return False

    def idle_seconds(self) -> float:
        if not self._leadership.held():
            return settings.STANDBY_SECONDS
        return min(duty.due_at for duty in self._duties) - self.clock()

    def _try(self, name: str, what: Callable[[], Result]) -> Result | None:
        """Do it; what the engine refuses is told. An outage escapes."""
        try:
            result = what()
        except DatabaseError as error:
            if is_outage(error):
                raise
            self._tell(name, f"{name} failed: {' '.join(str(error).split())}")
            return None
        self._tell(name, "")
        return result

    def _tell(self, about: str, trouble: str) -> None:
        """Log a trouble when it begins, changes and ends, not at every round."""
        if trouble == self._told.get(about, ""):
            return
        self._told[about] = trouble
        if trouble:
            logger.warning("%s", trouble)
        else:
            logger.info("%s is well again", about)

    def _pace(self) -> float:
        return self.interval if self.clock() < self._active_until else self.idle_interval

    def _tick(self) -> None:
        try:
            ticked = client.ticker()
        except DatabaseError as error:
            if is_outage(error):
                raise
            ticked = self._tick_one_by_one()
        if ticked:
            self.ticks += ticked
            self._active_until = self.clock() + ACTIVE_SECONDS

    def _tick_one_by_one(self) -> int:
        """What is left when one queue makes the call for all of them fail."""
        ticked = 0
        for row in client.queue_info():
            if not (row["queue_external_ticker"] or row["queue_ticker_paused"]):
                queue = row["queue_name"]
                ticked += self._try(f"tick of queue {queue}", partial(client.tick, queue)) is not None
        return ticked

    def _return_retries(self) -> None:
        """Until none is due: one call moves only so many."""
        while client.maint_retry_events() and not self.stopping:
            self._active_until = self.clock() + ACTIVE_SECONDS

    def _rotate_step1(self) -> None:
        try:
            client.maint()
        except DatabaseError as error:
            if is_outage(error):
                raise
            for row in client.queue_info():
                queue = row["queue_name"]
                self._try(f"rotation of queue {queue}", partial(client.maint_rotate_tables_step1, queue))
        self._name_blockers()

    def _name_blockers(self) -> None:
        """A queue that cannot rotate grows without end: say who holds it up."""
        queues, consumers = client.queue_info(), client.consumer_info()
        blocked = rotation_blockers(queues, consumers, timedelta(seconds=2 * settings.PGQUE_MAINTENANCE_SECONDS))
        for queue in {row["queue_name"] for row in queues}:
            trouble = ""
            if queue in blocked:
                who = ", ".join(blocked[queue]) or "an old transaction on the events server"
                trouble = f"queue {queue} cannot rotate its tables and grows: it waits for {who}"
            self._tell(f"space of queue {queue}", trouble)

    def _rotate_step2(self) -> None:
        """Apart from step 1, in a later transaction: only then no writer of the old table is left behind."""
        client.maint_rotate_tables_step2()

    def _remove_silent_members(self) -> None:
        """Take members whose processes are gone out of their groups; what they held comes again by the retry queue."""
        for queue, group, member in silent_members(
            client.consumer_info(), timedelta(seconds=settings.PGQUE_SILENT_MEMBER_SECONDS)
        ):
            if client.unsubscribe_subconsumer(queue, group, member):
                logger.warning(
                    "Member %s left group %s of queue %s without a word and was removed", member, group, queue
                )

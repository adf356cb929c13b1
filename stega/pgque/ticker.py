"""The ticker: makes batches out of events, brings retries back, reclaims space."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings

from stega.pgque import client
from stega.pgque.leadership import Leadership
from stega.process import Process

logger = logging.getLogger(__name__)

ACTIVE_SECONDS = 2.0
"""How long after the last tick the queues count as active and are looked at at the quick pace."""


@dataclass(slots=True)
class Duty:
    what: Callable[[], None]
    every: Callable[[], float]
    due_at: float = 0.0

    def run(self, now: float) -> None:
        """Keep the rhythm of the due times, unless a whole period was missed."""
        self.what()
        every = self.every()
        self.due_at = (self.due_at if now - self.due_at < every else now) + every


class Ticker(Process):
    """Runs each duty when it is due, each in its own committed transaction. Start it as often as you like: one leads.

    Everything due is due at the start, so that `--once` means each duty once. A duty may be repeated or missed at any
    point without harm: the next round does it.
    """

    name = "pgque_ticker"
    aliases = ("events",)

    def __init__(self, *, interval: float | None = None, idle_interval: float | None = None) -> None:
        super().__init__(interval=interval or settings.PGQUE_TICK_SECONDS)
        self.idle_interval = max(idle_interval or settings.PGQUE_IDLE_TICK_SECONDS, self.interval)
        self.ticks = 0
        self._active_until = 0.0
        self._leadership = Leadership("ticker")
        self._duties = [
            Duty(self._tick, self._pace),
            Duty(self._return_retries, lambda: settings.PGQUE_RETRY_SECONDS),
            Duty(self._rotate_step1, lambda: settings.PGQUE_MAINTENANCE_SECONDS),
            Duty(self._rotate_step2, lambda: settings.PGQUE_ROTATE_SECONDS),
        ]

    def describe(self) -> str:
        return f"tick each {self.interval * 1000:g} ms while events flow, {self.idle_interval * 1000:g} ms when idle"

    def step(self) -> bool:
        if not self._leadership.held():
            return False
        for duty in self._duties:
            if duty.due_at <= self.clock() and not self.stopping:
                duty.run(self.clock())
        return False

    def idle_seconds(self) -> float:
        if not self._leadership.held():
            return settings.STANDBY_SECONDS
        return min(duty.due_at for duty in self._duties) - self.clock()

    def _pace(self) -> float:
        return self.interval if self.clock() < self._active_until else self.idle_interval

    def _tick(self) -> None:
        ticked = client.ticker()
        if ticked:
            self.ticks += ticked
            self._active_until = self.clock() + ACTIVE_SECONDS

    def _return_retries(self) -> None:
        """Until none is due: one call moves only so many."""
        while client.maint_retry_events() and not self.stopping:
            self._active_until = self.clock() + ACTIVE_SECONDS

    def _rotate_step1(self) -> None:
        client.maint()

    def _rotate_step2(self) -> None:
        """Apart from step 1, in a later transaction: only then no writer of the old table is left behind."""
        client.maint_rotate_tables_step2()

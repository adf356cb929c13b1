"""What every long-running command is: a loop around one unit of work, a wake-up and a stop."""

import logging
import os
import random
import select
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections

from stega.database.outages import is_outage
from stega.database.pooling import POOLED
from stega.processes.heartbeat import Heartbeat

logger = logging.getLogger(__name__)

BACK_OFF_CAP_SECONDS = 5.0
"""Longest wait between two tries to reach a database again."""


class TryAgain(Exception):
    """A step's word for a failure that a later try may get over: the loop backs off as for a lost database."""


class Wakeup(Protocol):
    """Something whose readable file descriptor ends a wait early."""

    def fileno(self) -> int: ...

    def pending(self) -> bool:
        """Whether a wake-up has come since the last call; takes what the descriptor offers."""


class Process:
    """A loop around `step()`: one unit of work, True for "look again at once", False for "idle".

    A lost database is logged once, and the loop backs off and goes on when it is back (`setup()` runs again).
    Anything else that `step()` raises is a bug: it escapes and ends the process, for a supervisor to restart.
    Subclasses write `step()`, and where needed `setup()`, `teardown()` and `idle_seconds()`.
    """

    name = "process"
    aliases: tuple[str, ...] = ("default", "events")

    def __init__(self, *, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.interval = interval
        self.clock = clock
        self.stopping = False
        self.steps = 0
        self.wakeups: list[Wakeup] = []
        self.heartbeat: Heartbeat | None = None
        self._failures = 0
        self._pipe_read, self._pipe_write = os.pipe()
        os.set_blocking(self._pipe_write, False)

    def step(self) -> bool:
        raise NotImplementedError

    def setup(self) -> None:
        """Before the first step, and again after a lost connection: what lives and dies with a session."""

    def teardown(self) -> None:
        """After the last step, whatever ended the loop; a database may be away."""

    def idle_seconds(self) -> float:
        return self.interval

    def describe(self) -> str:
        """The settings that the start line tells."""
        return f"interval {self.interval:g} s"

    def run(self, *, until_idle: bool = False) -> None:
        """Work until `stop()`; with `until_idle`, until a step finds nothing. An outage at the start escapes."""
        name_connections(self.name, self.aliases)
        if "events" in self.aliases:
            bound_waits(lock_timeout=settings.HEALTHY_SECONDS / 3)
        if self.heartbeat:
            self.heartbeat.start()
        try:
            self.setup()
            logger.info("%s started (%s)", self.name, self.describe())
            self._loop(until_idle)
        except Exception as error:
            if not (self.stopping and is_outage(error)):
                raise
        finally:
            with suppress(DatabaseError, InterfaceError):
                self.teardown()
            if self.heartbeat:
                self.heartbeat.end()
            logger.info("%s stopped after %d steps", self.name, self.steps)

    def stop(self) -> None:
        """Ask the loop to end after the current unit. Safe from a signal handler or another thread, and twice."""
        self.stopping = True
        with suppress(BlockingIOError):
            os.write(self._pipe_write, b"x")

    def wait(self, seconds: float) -> None:
        """Sleep, but not past a stop or a wake-up."""
        if any(wakeup.pending() for wakeup in self.wakeups):
            return
        readable = [self._pipe_read, *(wakeup.fileno() for wakeup in self.wakeups)]
        select.select(readable, [], [], max(0.0, seconds))

    def beat(self, wait: float = 0.0) -> None:
        """Tell health checks that all is well, and will be during a wait of so many seconds."""
        if self.heartbeat:
            self.heartbeat.beat(wait)

    def _loop(self, until_idle: bool) -> None:
        while not self.stopping:
            wait = self._next(until_idle)
            if wait is None:
                break
            if wait and not self.stopping:
                self.wait(wait)

    def _next(self, until_idle: bool) -> float | None:
        """Take one step; the seconds to wait before the next, None for the end."""
        try:
            if self._failures:
                self.setup()
            busy = self.step()
            wait = 0.0 if busy else self.idle_seconds()
        except Exception as error:
            if until_idle or not (is_outage(error) or isinstance(error, TryAgain)):
                raise
            return self._back_off(error)
        if self._failures:
            logger.info("%s goes on after %d failed tries", self.name, self._failures)
        self._failures = 0
        self.steps += 1
        self.beat(wait)
        return None if until_idle and not busy else wait

    def _back_off(self, error: Exception) -> float:
        if not self._failures:
            logger.warning("%s will try again: %s", self.name, " ".join(str(error).split()))
        self._failures += 1
        self.wakeups = []
        for alias in self.aliases:
            connections[alias].close()
        return random.uniform(0.1, min(BACK_OFF_CAP_SECONDS, 0.1 * 2**self._failures))


def name_connections(name: str, aliases: Iterable[str]) -> None:
    """Let `pg_stat_activity` say which process a connection belongs to; of pooled ones on `events`, that they are."""
    for alias in aliases:
        is_pooled = alias == "events" and settings.EVENTS_POOLED
        _connect_with(alias, application_name=name + POOLED if is_pooled else name)


def bound_waits(**seconds: float) -> None:
    """Let the server of `events` cut what takes longer, such as `lock_timeout=10.0`: one that hangs is one away.

    A pooler refuses such settings: behind one they are a matter of the role (`alter role ... set lock_timeout`).
    """
    if settings.EVENTS_POOLED:
        return
    words = " ".join(f"-c {name}={max(1, int(value * 1000))}" for name, value in seconds.items())
    options = connections["events"].settings_dict.get("OPTIONS", {}).get("options", "")
    if not options.startswith(words):  # first, so that what the database's address says rules
        _connect_with("events", options=f"{words} {options}".rstrip())


def _connect_with(alias: str, **wanted: str) -> None:
    options = connections[alias].settings_dict.setdefault("OPTIONS", {})
    if not wanted.items() <= options.items():
        options.update(wanted)
        if not connections[alias].in_atomic_block:
            connections[alias].close()

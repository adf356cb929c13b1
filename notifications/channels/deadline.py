"""Limits on the whole of a slow call, which a socket's time-out (per read) does not give."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stega.wording.text import trace

logger = logging.getLogger(__name__)


class DeadlineExceeded(Exception):
    """The call was still running when its time was over; what it did is unknown."""


def within(seconds: float, call: Callable[[], None], late: Callable[[], None] = lambda: None, *, name: str) -> None:
    """Run `call` and return or raise as it does; after `seconds` give it up with DeadlineExceeded.

    The call runs in a thread of its own, with this name, which is left behind when given up: a daemon, so that it keeps
    no process alive. When it succeeds there after all, the thread calls `late`, which closes the database connections
    it opens.
    """
    failures: list[Exception] = []
    ending = threading.Lock()
    has_ended = is_given_up = False

    def run() -> None:
        nonlocal has_ended
        try:
            call()
        except Exception as failure:
            failures.append(failure)
        with ending:
            has_ended = True
            if is_given_up and not failures:
                late()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    with ending:
        is_given_up = not has_ended
    if is_given_up:
        raise DeadlineExceeded(f"gave up after {seconds:g} s")
    if failures:
        raise failures[0]


@contextmanager
def cut_after(seconds: float, cut: Callable[[], None]) -> Iterator[None]:
    """The same for what ends as soon as another thread calls `cut`, such as a wait at a socket which that shuts.

    It costs no thread of its own. `cut` is called once at most, and never when this is over.
    """
    call = _Call(time.monotonic() + seconds, cut)
    _watchdog.begin(call)
    try:
        yield
    except Exception as failure:
        if call.is_cut:
            raise DeadlineExceeded(f"gave up after {seconds:g} s") from failure
        raise
    finally:
        _watchdog.end(call)


class _Call:
    def __init__(self, due: float, cut: Callable[[], None]) -> None:
        self.due = due
        self.cut = cut
        self.is_cut = False


class _Watchdog:
    """Cuts the calls that are overdue, from one thread. It sleeps on while calls that follow each other are in time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls: set[_Call] = set()
        self._wakes_at = math.inf
        self._thread: threading.Thread | None = None

    def begin(self, call: _Call) -> None:
        with self._changed:
            self._calls.add(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="deadlines", daemon=True)
                self._thread.start()
            if call.due < self._wakes_at:
                self._changed.notify()

    def end(self, call: _Call) -> None:
        with self._changed:
            self._calls.discard(call)

    def _work(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for call in [call for call in self._calls if call.due <= now]:
                    self._calls.discard(call)
                    call.is_cut = True
                    _cut(call)
                self._wakes_at = min((call.due for call in self._calls), default=math.inf)
                self._changed.wait(None if self._wakes_at == math.inf else self._wakes_at - now)


def _cut(call: _Call) -> None:
    """Whatever comes of it, the watchdog lives on: without it no call of this process would have an end."""
    try:
        call.cut()
    except Exception as failure:
        logger.error("What took too long could not be cut\n%s", trace(failure))


_watchdog = _Watchdog()

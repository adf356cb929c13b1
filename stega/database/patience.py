"""How long one request may wait for its databases, and whether they answer at all.

The limit is on our side: a server that hangs keeps its connections, takes new ones and heeds no time-out of its own.
One that is well is told to end, soon after, what a request has given up: a statement that waits for a lock waits on
without its connection.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from django.conf import settings

GRACE_SECONDS = 1.0
"""How much later than a request, or the end of a task's time, the server gives up."""


@dataclass(slots=True)
class _Patience:
    left: float


_patience: ContextVar[_Patience | None] = ContextVar("patience", default=None)


@contextmanager
def limited_to(seconds: float) -> Iterator[None]:
    """All waiting for databases by this thread may take that long together; then each question fails as an outage.

    What the thread does between its questions costs no patience: a database is not away because somebody is slow.
    """
    token = _patience.set(_Patience(seconds))
    try:
        yield
    finally:
        _patience.reset(token)


def limit(seconds: float) -> None:
    """The same from now on, until the next limit: for a thread that does one thing after the other."""
    _patience.set(_Patience(seconds))


def left() -> float | None:
    """The seconds that this thread may still wait, 0 at least; None without a limit. Counted when a wait is over."""
    patience = _patience.get()
    return None if patience is None else max(0.0, patience.left)


def server_limit() -> float:
    """The seconds after which the server is to end a statement of a web process."""
    return float(settings.STEGA_REQUEST_DATABASE_SECONDS) + GRACE_SECONDS


def server_limit_of_tasks() -> float:
    """The same for a task worker: a statement may take as long as a task."""
    return float(settings.Q_CLUSTER["timeout"]) + GRACE_SECONDS


class Waits:
    """Which threads wait for a database now, and when one of them last got an answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting = 0
        self._heard = 0.0

    @contextmanager
    def one(self) -> Iterator[None]:
        """A wait, at the cost of the thread's patience; it counts as answered unless it raises TimeoutError."""
        begin = time.monotonic()
        with self._lock:
            if not self._waiting:
                self._heard = time.monotonic()
            self._waiting += 1
        heard = True
        try:
            yield
        except TimeoutError:
            heard = False
            raise
        finally:
            with self._lock:
                self._waiting -= 1
                if heard:
                    self._heard = time.monotonic()
            if patience := _patience.get():
                patience.left -= time.monotonic() - begin

    def are_vain(self, threads: int, seconds: float) -> bool:
        """Whether so many threads wait, and none of them got an answer for that long."""
        with self._lock:
            return self._waiting >= threads and time.monotonic() - self._heard > seconds


waits = Waits()
"""Those of this process's requests."""

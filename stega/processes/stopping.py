"""Stopping when asked to: by a signal, and in time."""

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

STOP_SECONDS = 8.0
"""How long a process may take to stop by itself; supervisors wait 10 s before they kill."""


class Stoppable(Protocol):
    def stop(self) -> object: ...


class Deadline:
    """Ends the process, exit code 0, when it has not stopped `seconds` after it was asked to: it hangs somewhere.

    What it was doing is left open, as after a crash, and done again by whoever comes next. A thread watches, since the
    main one may be in a call that no signal gets out of; `begin()` only writes to a pipe, and is safe in a handler.
    """

    def __init__(self, seconds: float = STOP_SECONDS) -> None:
        self.seconds = seconds
        self._begun = False
        self._read, self._write = os.pipe()
        threading.Thread(target=self._watch, name="deadline", daemon=True).start()

    def begin(self) -> None:
        if not self._begun:
            self._begun = True
            os.write(self._write, b"x")

    def call_off(self) -> None:
        os.close(self._write)

    def _watch(self) -> None:
        is_asked = os.read(self._read, 1)
        if is_asked and not select.select([self._read], [], [], self.seconds)[0]:
            os.write(2, b"stega: did not stop in time; what was open is left to be done again\n")
            self.expire()
        os.close(self._read)

    def expire(self) -> None:
        os._exit(0)


@contextmanager
def stop_on_signals(process: Stoppable) -> Iterator[None]:
    """SIGTERM and SIGINT ask the process to stop, in time; a second one kills it. Main thread only."""
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    deadline = Deadline()

    def ask(number: int, frame: FrameType | None) -> None:
        for each in previous:
            signal.signal(each, signal.SIG_DFL)
        deadline.begin()
        process.stop()

    for number in previous:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        deadline.call_off()


def leave_on_signals() -> None:
    """SIGTERM and SIGINT end the process at once, exit code 0: for the time before it has anything to finish.

    As the first process of a container it would ignore them otherwise.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))

"""A limit on the whole of a slow call, which a socket's time-out (per read) does not give."""

import threading
from collections.abc import Callable


class DeadlineExceeded(Exception):
    """The call was still running when its time was over; what it did is unknown."""


def within(seconds: float, call: Callable[[], None]) -> None:
    """Run `call` and return or raise as it does; after `seconds` give it up with DeadlineExceeded.

    The call runs in a thread of its own, which is left behind when given up: a daemon, so that it keeps no process
    alive. It must not touch a database, whose connections belong to threads.
    """
    failures: list[Exception] = []

    def run() -> None:
        try:
            call()
        except Exception as failure:
            failures.append(failure)

    thread = threading.Thread(target=run, name="delivery", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise DeadlineExceeded(f"gave up after {seconds:g} s")
    if failures:
        raise failures[0]

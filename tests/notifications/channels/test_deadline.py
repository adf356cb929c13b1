import threading

import pytest

from notifications.channels.deadline import DeadlineExceeded, within


def wait_for(event: threading.Event) -> None:
    event.wait()


def test_a_quick_call_returns():
    done = []

    within(5, lambda: done.append(True))

    assert done == [True]


def test_what_the_call_raises_comes_out():
    def fail():
        raise LookupError("no such host")

    with pytest.raises(LookupError, match="no such host"):
        within(5, fail)


def test_a_call_that_never_ends_is_given_up():
    never = threading.Event()

    with pytest.raises(DeadlineExceeded):
        within(0.05, lambda: wait_for(never))

    never.set()

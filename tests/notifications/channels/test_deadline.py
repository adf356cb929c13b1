import threading
from contextlib import suppress

import pytest

from notifications.channels.deadline import DeadlineExceeded, cut_after, within


def wait_for(event: threading.Event) -> None:
    event.wait()


def read_until(cut: threading.Event) -> None:
    """What a read of a socket does that `cut` shuts."""
    cut.wait()
    raise OSError("the socket was shut")


def test_a_quick_call_returns():
    done = []

    within(5, lambda: done.append(True), name="call")

    assert done == [True]


def test_what_the_call_raises_comes_out():
    def fail():
        raise LookupError("no such host")

    with pytest.raises(LookupError, match="no such host"):
        within(5, fail, name="call")


def test_a_call_that_never_ends_is_given_up():
    never = threading.Event()

    with pytest.raises(DeadlineExceeded):
        within(0.05, lambda: wait_for(never), name="call")

    never.set()


def test_a_call_that_is_cut_when_its_time_is_over_was_given_up():
    cut = threading.Event()

    with pytest.raises(DeadlineExceeded), cut_after(0.05, cut.set):
        read_until(cut)


def test_what_a_call_in_time_raises_comes_out():
    with pytest.raises(LookupError, match="no such host"), cut_after(5, pytest.fail):
        raise LookupError("no such host")


def test_calls_that_follow_each_other_are_cut_each_when_its_own_time_is_over():
    calls = [threading.Event() for _ in range(3)]
    with cut_after(60, calls[0].set):
        pass

    for call in calls[1:]:
        with pytest.raises(DeadlineExceeded), cut_after(0.05, call.set):
            read_until(call)

    assert [call.is_set() for call in calls] == [False, True, True]


def test_a_cut_that_fails_leaves_later_calls_their_end(caplog):
    failed, cut = threading.Event(), threading.Event()

    def fail():
        failed.set()
        raise BrokenPipeError("already gone")

    with cut_after(0.05, fail):
        wait_for(failed)
    with pytest.raises(DeadlineExceeded), cut_after(0.05, cut.set):
        read_until(cut)

    assert "could not be cut" in caplog.text


def test_a_call_that_was_over_in_time_is_never_cut():
    cut, later = threading.Event(), threading.Event()
    with cut_after(0.05, cut.set):
        pass

    with suppress(DeadlineExceeded), cut_after(0.1, later.set):
        wait_for(later)

    assert not cut.is_set()

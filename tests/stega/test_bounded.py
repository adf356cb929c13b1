"""stega/bounded.py: a call that may hang costs its caller a bounded time."""

import os
import threading

import pytest

from stega.bounded import BoundedCaller
from tests.support.waiting import wait_until


def test_the_result_comes_back_and_every_call_runs_on_the_same_thread():
    caller = BoundedCaller("test")

    threads = {caller.call(threading.get_ident, seconds=5) for _ in range(3)}

    assert len(threads) == 1
    assert threads != {threading.get_ident()}


def test_what_the_function_raises_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        BoundedCaller("test").call(lambda: 1 / 0, seconds=5)


def test_a_hanging_call_times_out_and_keeps_the_caller_stuck_until_it_ends():
    caller, release = BoundedCaller("test"), threading.Event()

    with pytest.raises(TimeoutError):
        caller.call(release.wait, seconds=0.01)

    assert caller.stuck
    release.set()
    wait_until(lambda: not caller.stuck, timeout=5)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")  # that is what is tried here
def test_a_forked_child_gets_a_thread_of_its_own():
    caller = BoundedCaller("test")
    caller.call(lambda: None, seconds=5)
    child = os.fork()
    if not child:
        os._exit(caller.call(lambda: 42, seconds=5))

    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 42

"""stega/processes/stopping.py: signals ask for a stop, and the stop comes in time."""

import os
import signal
import sys
import threading

from stega.processes.stopping import STOP_SECONDS, Deadline, stop_on_signals
from tests.support.processes import RunningProcess
from tests.support.waiting import wait_until

HANGS = """
import functools, signal
from stega.processes import stopping

class Hanging:
    def stop(self):
        print("asked", flush=True)

stopping.Deadline = functools.partial(stopping.Deadline, 0.2)
with stopping.stop_on_signals(Hanging()):
    print("hangs", flush=True)
    while True:
        signal.pause()
"""


class Asked:
    stopping = False

    def stop(self):
        self.stopping = True


def test_the_first_signal_stops_and_gives_the_second_its_default():
    process = Asked()

    with stop_on_signals(process):
        os.kill(os.getpid(), signal.SIGTERM)
        assert process.stopping
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL


def test_the_handlers_of_before_come_back():
    before = signal.getsignal(signal.SIGTERM)

    with stop_on_signals(Asked()):
        pass

    assert signal.getsignal(signal.SIGTERM) == before


def test_a_process_that_does_not_stop_in_time_is_ended(monkeypatch):
    expired = threading.Event()
    deadline = Deadline(0.01)
    monkeypatch.setattr(deadline, "expire", expired.set)

    deadline.begin()

    assert expired.wait(5)
    deadline.call_off()


def test_a_process_that_hangs_ends_by_itself_with_exit_code_0_and_says_so():
    with RunningProcess(sys.executable, "-c", HANGS, env=os.environ) as process:
        process.wait_for("hangs")

        assert process.terminate(timeout=10) == 0
        assert "asked" in process.output
        assert "did not stop in time" in process.output


def test_the_deadline_comes_before_a_supervisor_kills():
    assert Deadline.__init__.__defaults__ == (STOP_SECONDS,)
    assert STOP_SECONDS < 10


def test_a_process_that_stops_in_time_is_left_alone(monkeypatch):
    expired = threading.Event()
    before = threading.active_count()
    deadline = Deadline(60.0)
    monkeypatch.setattr(deadline, "expire", expired.set)

    deadline.begin()
    deadline.begin()
    deadline.call_off()

    wait_until(lambda: threading.active_count() == before, timeout=5)
    assert not expired.is_set()

"""stega/processes/process.py: the only loop."""

import threading

import pytest
from django.db import InterfaceError, OperationalError

from stega.processes.process import Process


class Scripted(Process):
    """A process whose steps do what a list says: a value to return, an error to raise, a function to call."""

    name = "scripted"
    aliases = ()

    def __init__(self, *script, interval=60.0):
        super().__init__(interval=interval)
        self.script = list(script)
        self.setups = 0
        self.torn_down = False

    def setup(self):
        self.setups += 1

    def teardown(self):
        self.torn_down = True

    def step(self):
        do = self.script.pop(0)
        if callable(do):
            do = do()
        if isinstance(do, Exception):
            raise do
        return do


def test_until_idle_works_while_there_is_work_and_then_ends():
    process = Scripted(True, True, False)

    process.run(until_idle=True)

    assert process.script == []
    assert process.torn_down


def test_a_stop_ends_the_loop_after_the_current_step():
    process = Scripted()
    process.script = [True, lambda: process.stop() or True, AssertionError("a step after the stop")]

    process.run()

    assert len(process.script) == 1


def test_a_stop_from_another_thread_wakes_an_idle_process():
    process = Scripted(False, interval=60.0)
    stopper = threading.Timer(0.05, process.stop)
    stopper.start()

    process.run()

    assert process.steps == 1


def test_a_stop_before_the_start_is_not_lost():
    process = Scripted()
    process.stop()

    process.run()

    assert process.steps == 0


@pytest.mark.parametrize("error", [OperationalError("server closed the connection"), InterfaceError("closed")])
def test_a_lost_database_is_waited_out_and_set_up_again(monkeypatch, error):
    process = Scripted()
    process.script = [error, error, lambda: process.stop() or False]
    waits = []
    monkeypatch.setattr(process, "wait", waits.append)

    process.run()

    assert len(waits) == 2
    assert 0 < waits[0] <= waits[1] * 10 < 100
    assert process.setups == 3  # at the start, then before each further try


def test_anything_else_is_a_bug_and_escapes_after_the_teardown():
    process = Scripted(ValueError("a bug"))

    with pytest.raises(ValueError, match="a bug"):
        process.run()

    assert process.torn_down


def test_an_outage_at_the_start_escapes():
    class Unreachable(Scripted):
        def setup(self):
            raise OperationalError("connection refused")

    with pytest.raises(OperationalError):
        Unreachable().run()


def test_a_pending_wakeup_ends_the_wait_at_once():
    class Heard:
        def fileno(self):
            return process._pipe_read

        def pending(self):
            return True

    process = Scripted(False, True, False, interval=60.0)
    process.wakeups = [Heard()]
    process.script = [False, False, lambda: process.stop() or False]

    process.run()

    assert process.steps == 3

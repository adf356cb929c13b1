import io
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack

import psutil
import pytest

from stega.processes import procfile
from stega.processes.procfile import Runner, commands, end_leftovers
from tests.support.waiting import wait_until

PYTHON = f'"{sys.executable}" -u -c'
SLEEP = f"{PYTHON} 'import os, signal; print(os.getpid()); signal.pause()'"


class Output(io.StringIO):
    """What the runner printed; calls `on_line` with each line, from the runner's own thread."""

    def __init__(self, on_line=lambda line: None):
        super().__init__()
        self.on_line = on_line

    def write(self, text):
        written = super().write(text)
        if text.strip():
            self.on_line(text)
        return written


@pytest.fixture
def make_runner(tmp_path):
    def make(output):
        return Runner(tmp_path, os.environ, output)

    return make


def pids(output):
    return [int(line.rsplit("| ")[-1]) for line in output.getvalue().splitlines()]


def stop_after(count, runners):
    """An output that stops the runner once so many lines have come."""
    lines = []

    def on_line(line):
        lines.append(line)
        if len(lines) == count:
            runners[0].stop()

    return Output(on_line)


def test_each_line_carries_the_name_of_its_process(make_runner):
    output = Output()
    runner = make_runner(output)
    runner.add("web", "echo hello")

    runner.run()

    assert output.getvalue().endswith(" web | hello\n")


def test_the_end_of_one_process_ends_all_and_is_named(make_runner):
    output = Output()
    runner = make_runner(output)
    runner.add("steady", SLEEP)
    runner.add("failing", f"{PYTHON} 'raise SystemExit(3)'")

    ended = runner.run()

    assert ended == "failing ended with code 3"
    assert not any(psutil.pid_exists(pid) for pid in pids(output))


def test_stop_ends_every_process_and_blames_none(make_runner):
    runners = []
    output = stop_after(2, runners)
    runners.append(make_runner(output))
    runners[0].add("one", SLEEP)
    runners[0].add("two", SLEEP)

    ended = runners[0].run()

    assert ended is None
    assert len(pids(output)) == 2
    assert not any(psutil.pid_exists(pid) for pid in pids(output))


@pytest.mark.parametrize("number", procfile.SIGNALS)
def test_each_signal_stops_and_gives_the_former_handler_back(make_runner, number):
    before = signal.getsignal(number)
    output = Output(lambda line: os.kill(os.getpid(), number))
    runner = make_runner(output)
    runner.add("one", SLEEP)

    ended = runner.run()

    assert ended is None
    assert signal.getsignal(number) is before


def test_a_process_that_ignores_sigterm_is_killed_with_its_children(make_runner, monkeypatch):
    monkeypatch.setattr(procfile, "END_SECONDS", 0.5)
    runners = []
    output = stop_after(2, runners)
    runners.append(make_runner(output))
    say = "os.write(1, str(os.getpid()).encode() + bytes([10]))"  # one write: two processes share the line
    deaf = f"signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork(); {say}; signal.pause()"
    runners[0].add("deaf", f"{PYTHON} 'import os, signal; {deaf}'")

    runners[0].run()

    wait_until(lambda: not any(is_alive(pid) for pid in pids(output)), timeout=10)


def is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_process_may_finish_its_work_after_sigterm(make_runner):
    output = Output(lambda line: runner.stop() if "ready" in line else None)
    runner = make_runner(output)
    finish = 'lambda *_: sys.exit(print("finished"))'
    code = f'import signal, sys; signal.signal(signal.SIGTERM, {finish}); print("ready"); signal.pause()'
    runner.add("worker", f"{PYTHON} '{code}'")

    runner.run()

    assert "finished" in output.getvalue()


def test_a_closed_output_does_not_block_the_processes(make_runner):
    def broken(line):
        raise BrokenPipeError

    runner = make_runner(Output(broken))
    runner.add("chatty", f"{PYTHON} 'for number in range(10000): print(number)'")

    assert runner.run() == "chatty ended with code 0"


@pytest.fixture
def start_marked():
    """Start processes that carry the mark of a folder; the rest of them ends with the test."""
    with ExitStack() as stack:
        yield lambda folder: start(folder, stack)


def start(folder, stack):
    environment = {**os.environ, procfile.MARK: str(folder)}
    code = "import signal; print('ready', flush=True); signal.pause()"
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
    stack.enter_context(process)
    stack.callback(process.kill)
    assert process.stdout is not None
    process.stdout.readline()
    return process.pid


def test_leftovers_of_this_folder_are_ended_and_those_of_another_are_not(tmp_path, start_marked):
    here, elsewhere = start_marked(tmp_path), start_marked(tmp_path / "other")

    count = end_leftovers(tmp_path)

    assert count == 1
    assert not is_alive(here)
    assert is_alive(elsewhere)


def test_replicas_are_numbered(tmp_path):
    path = tmp_path / "Procfile"
    path.write_text("web: serve $PORT\n# note\nsla: watch\n")

    assert commands(path, {"sla": 2}) == {"web": "serve $PORT", "sla.1": "watch", "sla.2": "watch"}


def test_no_thread_is_left(make_runner):
    before = threading.active_count()
    runner = make_runner(Output())
    runner.add("web", "echo hello")

    runner.run()

    assert threading.active_count() == before

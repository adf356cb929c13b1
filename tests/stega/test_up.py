"""`manage.py up` in a copy of the project, as a newcomer runs it: no database URL, a path with a blank."""

import os
import re
import shutil
import signal
import socket
import sys
import urllib.request
from contextlib import suppress

import psutil
import pytest

from stega import embedded
from stega.embedded import Server
from tests.support.processes import ROOT, VARIABLES, RunningProcess, free_port
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]
READY = "Ctrl+C stops everything"
PROCESSES = {"web", "tasks", "ticker", "notifications", "sla.1", "sla.2"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("up") / "uma pasta"
    unneeded = shutil.ignore_patterns(".*", "__pycache__", "staticfiles", "tests")
    shutil.copytree(ROOT, folder, ignore=unneeded)
    yield folder
    Server(folder / ".stega").delete()


@pytest.fixture
def up(folder):
    """Start `manage.py up` on a free port; what is left of it ends with the test."""
    started = []

    def up(*options, port=None, saying=READY):
        port = port or free_port()
        env = {name: value for name, value in os.environ.items() if name not in VARIABLES.values()}
        env |= {"STEGA_DEBUG": "1", "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "manage.py", "up", "--port", str(port), *options]
        process = RunningProcess(*command, env=env, cwd=folder)
        process.port = port
        started.append(process)
        if saying:
            process.wait_for(saying, timeout=90)
        return process

    yield up
    for process in started:
        process.__exit__()
    kill(processes_of(folder))
    embedded.project_server(folder).stop()


def processes_of(folder):
    """Every process that works in the folder, and its PostgreSQL."""
    found = []
    data = str(embedded.project_server(folder).data)
    for process in psutil.process_iter():
        try:
            if process.cwd() in (str(folder), data) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def kill(processes):
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # one may end the other, as a parent does
            process.kill()


def names_in(output):
    return set(re.findall(r"^\d\d:\d\d:\d\d (\S+) +\|", output, re.MULTILINE))


def child(parent, command):
    return next(process for process in psutil.Process(parent).children() if command in " ".join(process.cmdline()))


def test_it_answers_and_runs_every_process_with_two_sla_workers(up):
    running = up()

    with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/accounts/login/", timeout=10) as response:
        status = response.status
    wait_until(lambda: names_in(running.output) == PROCESSES, timeout=30)

    assert status == 200
    assert "Sign in as customer, agent or admin; the password is demo." in running.output


def test_a_start_on_another_port_finds_nothing_to_warn_of(up):
    up().terminate()

    running = up()
    wait_until(lambda: names_in(running.output) == PROCESSES, timeout=30)

    assert "WARNING" not in running.output


def test_some_processes_can_be_left_to_be_started_by_hand(up):
    running = up("--only", "web", "sla")

    wait_until(lambda: names_in(running.output) == {"web", "sla.1", "sla.2"}, timeout=30)


def test_ctrl_c_ends_every_process_and_exits_with_0(up, folder):
    running = up()

    code = running.interrupt()

    assert code == 0, running.output
    assert processes_of(folder) == []


def test_sigterm_ends_every_process_and_exits_with_0(up, folder):
    running = up()

    code = running.terminate()

    assert code == 0, running.output
    assert processes_of(folder) == []


def test_ctrl_c_while_it_prepares_leaves_no_process(up, folder):
    running = up(saying="Starting the embedded PostgreSQL")

    code = running.interrupt()

    assert code == 0, running.output
    assert processes_of(folder) == []


def test_the_end_of_one_process_ends_all_with_an_error_that_names_it(up, folder):
    running = up()

    child(running.pid, "pgque_ticker").kill()

    assert running.wait() == 1
    assert "ticker ended with code -9; everything else was stopped." in running.output
    assert processes_of(folder) == []


def test_a_start_after_a_killed_one_cleans_up_and_answers(up, folder):
    killed = up()
    leftovers = child(killed.pid, "gunicorn")
    os.kill(killed.pid, signal.SIGKILL)

    up(port=killed.port)

    assert not leftovers.is_running()


def test_a_second_start_from_the_same_folder_is_refused(up):
    up()

    second = up(saying="Stega is already running from this folder")

    assert second.wait() == 1


def test_a_busy_port_is_refused_with_a_remedy(up):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        refused = up(port=busy.getsockname()[1], saying="make run PORT=")

        assert refused.wait() == 1

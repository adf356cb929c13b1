"""--check: what a health check learns about a process, and what stops and starts do to it."""

import os
import signal
import uuid

import psutil
import pytest
from django.conf import settings
from django.db import connections

from stega.pgque.publishing import publish
from tests.processes.test_faults import PROCESSES
from tests.support import servers
from tests.support.event_log import tick
from tests.support.processes import manage
from tests.support.waiting import wait_until


@pytest.fixture
def check(env):
    """The exit code of `--check`, which must take one line to say it."""

    def check(command):
        with manage(command, "--check", env=env) as checking:
            code = checking.wait()
            assert checking.output.count("\n") == 1, checking.output
            return code

    return check


@pytest.mark.parametrize(("command", "saying"), PROCESSES.items())
def test_a_process_is_well_while_it_runs(start, check, command, saying):
    before = check(command)
    process = start(command, saying=saying)
    wait_until(lambda: check(command) == 0, timeout=20)

    process.terminate()

    assert (before, check(command)) == (1, 1)


@pytest.mark.parametrize(
    ("command", "alias"), [("pgque_ticker", "events"), ("notification_worker", "events"), ("qcluster", "jobs")]
)
def test_a_process_that_cannot_reach_its_database_is_not_well_until_it_can(start, check, command, alias):
    start(command, saying=PROCESSES[command])
    wait_until(lambda: check(command) == 0, timeout=20)
    connections[alias].close()
    servers.by_alias[alias].stop()
    try:
        wait_until(lambda: check(command) == 1, timeout=20)
    finally:
        servers.by_alias[alias].start()

    wait_until(lambda: check(command) == 0, timeout=30)


def test_a_worker_that_hangs_in_a_message_is_not_well(start, check, customer):
    start("notification_worker")
    wait_until(lambda: check("notification_worker") == 0, timeout=20)
    with connections["default"].copy().cursor() as other:
        other.execute("begin; lock table notifications_delivery in access exclusive mode")
        publish("ticket.welcome", {"user_id": customer.pk, "email": "", "display_name": ""}, uuid.uuid4())
        tick(settings.PGQUE_QUEUE)

        wait_until(lambda: check("notification_worker") == 1, timeout=20)

        other.connection.close()
    wait_until(lambda: check("notification_worker") == 0, timeout=20)


def test_a_killed_cluster_leaves_no_guard_and_no_worker(start):
    cluster = start("qcluster", saying="running")
    (guard,) = children(cluster.pid)
    everybody = [guard, *children(guard)]

    os.kill(cluster.pid, signal.SIGKILL)

    wait_until(lambda: not any(is_running(pid) for pid in everybody), timeout=10)


def test_a_cluster_whose_guard_is_killed_ends_with_all_its_workers(start):
    cluster = start("qcluster", saying="ready for work")
    (guard,) = children(cluster.pid)
    workers = wait_until(lambda: children(guard), timeout=5)

    os.kill(guard, signal.SIGKILL)

    assert cluster.wait() == 1
    wait_until(lambda: not any(is_running(pid) for pid in workers), timeout=5)


def test_a_cluster_whose_guard_hangs_ends(start):
    cluster = start("qcluster", saying="running")
    (guard,) = children(cluster.pid)

    os.kill(guard, signal.SIGSTOP)

    assert cluster.wait() == 1


@pytest.mark.parametrize("number", [0, 1, 2], ids=["worker", "monitor", "pusher"])
def test_a_cluster_one_of_whose_processes_is_killed_ends_with_all_others(start, number):
    cluster = start("qcluster", saying="pushing tasks")
    (guard,) = children(cluster.pid)
    helpers = wait_until(lambda: len(children(guard)) == 3 and children(guard), timeout=5)

    os.kill(helpers[number], signal.SIGKILL)

    assert cluster.wait() == 1
    wait_until(lambda: not any(is_running(pid) for pid in helpers), timeout=5)


def children(pid):
    return sorted(child.pid for child in psutil.Process(pid).children())


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

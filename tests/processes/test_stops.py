"""SIGTERM at any line ends a process with exit code 0 within 10 s."""

import signal
import time
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connections

from stega.pgque import client
from tests.processes.test_faults import PROCESSES
from tests.support import servers
from tests.support.processes import manage, run_task
from tests.support.waiting import wait_until

WAITERS = ["notification_worker", "sla_breach_worker", "pgque_ticker"]


def catches_sigterm(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    (caught,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return int(caught, 16) & 1 << (signal.SIGTERM - 1)


@pytest.mark.parametrize("command", PROCESSES)
def test_while_it_starts(env, command):
    with manage(command, env=env) as process:
        wait_until(lambda: catches_sigterm(process), timeout=10, interval=0.001)

        assert process.terminate(timeout=10) == 0, process.output


def test_in_a_handler_that_never_returns(send, work):
    send("hang")
    workers = [
        work(*arguments, saying="begins with 1")
        for arguments in (["notification_worker"], ["sla_breach_dispatcher", 60])
    ]

    assert _failures(workers) == []


def test_in_a_query_that_waits_for_a_lock(start):
    processes = [start(command) for command in WAITERS]
    with connections["events"].copy().cursor() as other:
        other.execute("begin; lock table pgque.subscription, pgque.tick in access exclusive mode")
        wait_until(lambda: _blocked() == len(processes), timeout=20)

        failures = _failures(processes)

        other.connection.close()
    assert failures == []


def _blocked():
    """How many processes wait for a lock."""
    with connections["events"].cursor() as cursor:
        cursor.execute(
            "select count(distinct application_name) from pg_stat_activity"
            " where wait_event_type = 'Lock' and datname = current_database()"
        )
        return cursor.fetchone()[0]


def _failures(processes):
    """Ask them all to stop; what those said that do not end well within the 10 s that a supervisor gives them."""
    deadline = time.monotonic() + 10
    for process in processes:
        process.signal(signal.SIGTERM)
    return [process.output for process in processes if process.wait(max(0, deadline - time.monotonic())) != 0]


def test_in_a_back_off(start):
    processes = [start(command) for command in WAITERS]
    connections["events"].close()
    servers.events.stop()
    try:
        for process in processes:
            process.wait_for("will try again")
        failures = _failures(processes)
    finally:
        servers.events.start()

    assert failures == []


def test_a_task_that_never_ends_is_cut(start, env):
    cluster = start("qcluster", saying="ready for work", TASK_TIMEOUT_SECONDS=100, TASK_RETRY_SECONDS=200)
    with closing(connections["default"].copy()) as holder:
        holder.cursor().execute("begin; lock table stega_outboxentry in access exclusive mode")
        connections["jobs"].close()
        run_task("stega.outbox.sweep")
        cluster.wait_for("processing")

        code = cluster.terminate()

    assert code == 0, cluster.output


def test_a_stopping_members_rest_is_handled_by_others_at_once(send, work, start, settings, tmp_path):
    gate = tmp_path / "gate"
    send(f"gate {gate}", "nothing", "nothing")
    stopping = work("sla_breach_dispatcher", 60, saying="begins with 1")
    other = work("sla_breach_dispatcher", 60)
    start("pgque_ticker")

    stopping.signal(signal.SIGTERM)
    gate.touch()

    assert stopping.wait() == 0
    other.wait_for("handled 3", timeout=10)
    assert "begins with 1" not in other.output
    assert not [row for row in client.consumer_info() if str(stopping.pid) in row["consumer_name"]]

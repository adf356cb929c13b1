"""stega/tasks/cluster.py, as far as it needs no process: the rest is in tests/processes/test_health.py."""

import os
import queue
import signal
import sys
import threading
import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone
from django_q.models import Schedule
from django_q.signals import pre_execute

from stega.database import patience
from stega.tasks import schedules
from stega.tasks.cluster import SCHEDULES_SECONDS, STUCK_SECONDS, Cluster, Sentinel, let_tasks_give_way

pytestmark = pytest.mark.django_db(databases=["default", "jobs"], transaction=True)


@pytest.mark.parametrize(("seconds_ago", "brought_back"), [(SCHEDULES_SECONDS + 1, True), (0, False)])
def test_a_cluster_looks_after_the_schedules_once_in_a_while(monkeypatch, seconds_ago, brought_back):
    monkeypatch.setattr("signal.signal", lambda *args: None)
    schedules.install()
    Schedule.objects.update(next_run=timezone.now() + timedelta(days=365))
    cluster = Cluster()
    cluster.schedules_seen_at -= seconds_ago

    assert cluster._reaches_its_queue()

    assert Schedule.objects.filter(next_run__gt=timezone.now() + timedelta(days=8)).exists() is not brought_back


@pytest.mark.parametrize("pid", [None, 4711])
def test_a_cluster_that_is_still_starting_ends_at_once_with_its_guard(monkeypatch, pid):
    killed = []
    monkeypatch.setattr("signal.signal", lambda *args: None)
    monkeypatch.setattr("os.kill", lambda *args: killed.append(args))
    monkeypatch.setattr("os._exit", sys.exit)
    cluster = Cluster()
    cluster.sentinel = SimpleNamespace(pid=pid)

    with pytest.raises(SystemExit, match="0"):
        cluster.sig_handler(signal.SIGTERM, None)

    assert killed == ([(pid, signal.SIGKILL)] if pid else [])


@pytest.fixture
def guard(monkeypatch):
    """A guard whose status is its own alone, with one task that has lain before the workers for too long."""
    monkeypatch.setattr("django_q.cluster.Sentinel.status", lambda guard: "status")
    guard = Sentinel.__new__(Sentinel)
    guard.main_pid = os.getppid()
    guard.beat = SimpleNamespace(value=0.0)
    guard.moved_at = time.monotonic() - STUCK_SECONDS
    guard.scheduled_at = time.monotonic()
    guard.stop_event = threading.Event()
    guard.task_queue = queue.SimpleQueue()
    guard.task_queue.put("task")
    return guard


IDLE, RECYCLED, BUSY = -1, -2, 3


@pytest.mark.parametrize(
    ("timers", "is_well"), [([IDLE], False), ([RECYCLED], False), ([IDLE, RECYCLED], False), ([IDLE, BUSY], True)]
)
def test_a_guard_is_well_while_one_of_its_workers_is_in_a_task(guard, timers, is_well):
    guard.pool = [SimpleNamespace(timer=SimpleNamespace(value=value)) for value in timers]

    guard.status()

    assert (guard.beat.value > 0) is is_well


def test_a_guard_with_nothing_to_do_is_well(guard):
    guard.pool = [SimpleNamespace(timer=SimpleNamespace(value=IDLE))]
    guard.task_queue.get()

    guard.status()

    assert guard.beat.value > 0


@pytest.mark.parametrize(("seconds_ago", "is_stopping", "looks"), [(30, False, 1), (0, False, 0), (30, True, 0)])
def test_a_guard_looks_for_due_schedules_each_scheduler_seconds_until_it_stops(
    guard, monkeypatch, settings, seconds_ago, is_stopping, looks
):
    looked = []
    monkeypatch.setattr("stega.tasks.cluster.scheduler", lambda broker: looked.append(broker))
    settings.SCHEDULER_SECONDS = 30
    guard.broker, guard.pool = "broker", []
    guard.scheduled_at -= seconds_ago
    if is_stopping:
        guard.stop_event.set()

    for _ in range(2):
        guard.status()

    assert looked == ["broker"] * looks


def test_each_task_may_wait_for_databases_anew_and_for_less_time_than_it_is_cut_in(settings):
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "timeout": 20}
    receivers = list(pre_execute.receivers)
    let_tasks_give_way()

    try:
        with patience.limited_to(0.0):
            pre_execute.send(sender="django_q", func=len, task={})

            assert patience.left() == 15.0
    finally:
        pre_execute.receivers = receivers

"""stega/tasks/broker.py: tasks are due by the clock of their database, and each is one cluster's at a time."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.db.models import F
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.conf import Conf
from django_q.models import OrmQ

from stega.tasks.broker import Broker
from tests.support.together import at_once

pytestmark = pytest.mark.django_db(databases=["default", "jobs"], transaction=True)


@pytest.fixture
def broker(monkeypatch):
    monkeypatch.setattr(Conf, "POLL", 0)
    broker = get_broker()
    assert isinstance(broker, Broker)
    return broker


@pytest.fixture(params=[timedelta(days=1), timedelta(), timedelta(days=-1)])
def wrong_clock(request, monkeypatch):
    now = timezone.now
    monkeypatch.setattr("django.utils.timezone.now", lambda: now() + request.param)


def pass_by(seconds):
    OrmQ.objects.update(lock=F("lock") - timedelta(seconds=seconds))


def test_a_wrong_clock_hides_no_task_and_keeps_none_too_long(broker, wrong_clock):
    number = broker.enqueue("task")
    assert (broker.queue_size(), broker.lock_size()) == (1, 0)

    assert broker.dequeue() == [(number, "task")]
    assert broker.dequeue() is None
    assert (broker.queue_size(), broker.lock_size()) == (0, 1)
    pass_by(Conf.RETRY)

    assert broker.dequeue() == [(number, "task")]


def test_a_task_that_was_taken_is_nobody_elses_until_the_retry_time_is_over(broker):
    broker.enqueue("task")
    broker.dequeue()
    pass_by(Conf.RETRY - 5)

    assert broker.dequeue() is None


def test_tasks_are_taken_in_order_and_a_few_at_a_time(broker):
    numbers = [broker.enqueue(f"task {number}") for number in range(Conf.BULK + 1)]

    assert [number for number, _ in broker.dequeue()] == numbers[:-1]
    assert [number for number, _ in broker.dequeue()] == numbers[-1:]


def test_a_done_task_does_not_come_again(broker):
    broker.acknowledge(broker.enqueue("task"))

    assert broker.dequeue() is None


def test_tasks_of_another_cluster_name_are_left_to_it(broker):
    get_broker("another").enqueue("task")

    assert broker.dequeue() is None


def test_clusters_at_once_take_each_task_once(broker):
    numbers = {broker.enqueue("task") for _ in range(200)}

    def take_all(_):
        taken = []
        while tasks := get_broker().dequeue():
            taken += [number for number, _ in tasks]
        return taken

    taken = [number for each in at_once(take_all, range(4)) for number in each]

    assert sorted(taken) == sorted(numbers)


def test_a_database_that_is_away_is_waited_out_and_told_once(broker, monkeypatch, caplog):
    monkeypatch.setattr("stega.tasks.broker.AWAY_SECONDS", 0)
    number = broker.enqueue("task")
    with monkeypatch.context() as away:
        away.setattr(broker, "get_connection", refuse)
        assert [broker.dequeue(), broker.dequeue()] == [None, None]

    with caplog.at_level("INFO", "stega.tasks.broker"):
        assert broker.dequeue() == [(number, "task")]

    told = [record.getMessage() for record in caplog.records if record.name == "stega.tasks.broker"]
    assert told == ["The queue of tasks cannot be reached: refused", "The queue of tasks is reached again"]


def refuse():
    raise OperationalError("refused")

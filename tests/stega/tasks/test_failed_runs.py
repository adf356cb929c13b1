"""stega/tasks/failed_runs.py: what django-q2 keeps of a run that failed, and whether its task comes again."""

from multiprocessing import SimpleQueue, Value

import pytest
from django.db import connections
from django.utils import timezone
from django_q import worker
from django_q.models import Failure, OrmQ
from django_q.monitor import monitor
from django_q.signals import post_execute_in_worker
from django_q.worker import worker as work

from accounts.models import User
from stega.database.mismatch import OtherSchema
from stega.outbox import GivenUp
from stega.tasks.broker import Broker
from stega.tasks.failed_runs import install

pytestmark = pytest.mark.django_db(databases=["default", "jobs"], transaction=True)
SECRET = "unheard-of"


@pytest.fixture
def run(monkeypatch):
    """The result that a worker passes on of a run of the function."""
    monkeypatch.setattr(worker, "error_reporter", None)
    install()

    def run(function, *arguments, **more):
        tasks, results = SimpleQueue(), SimpleQueue()
        tasks.put({"id": "1", "name": "one", "func": function, "args": arguments, "kwargs": {}, **more})
        tasks.put("STOP")
        work(tasks, results, Value("f", -1), timeout=-1)
        return results.get()

    yield run
    post_execute_in_worker.disconnect(dispatch_uid="stega.tasks.failed_runs")


@pytest.fixture
def broker():
    return Broker("stega")


def quote():
    raise ValueError(f"{SECRET} is no number")


def refuse():
    with connections["default"].cursor() as cursor:
        cursor.execute("select %s::text::integer", [SECRET])


def repeat():
    User.objects.create(username=SECRET)
    User.objects.create(username=SECRET)


def wrap():
    try:
        quote()
    except ValueError as error:
        raise RuntimeError(SECRET) from error


KINDS = {quote: "ValueError", wrap: "RuntimeError", refuse: "DataError 22P02", repeat: "IntegrityError 23505"}


@pytest.mark.parametrize(("function", "kind"), KINDS.items())
def test_a_failure_is_told_by_its_kind_and_place_without_its_words(run, function, kind):
    told = run(function)["result"]

    assert told.startswith(f"{kind} at ")
    assert SECRET not in told


def test_of_several_failures_each_keeps_its_own(run):
    told = [run(function)["result"].partition(" at ")[0] for function in (quote, wrap)]

    assert told == ["ValueError", "RuntimeError"]


def give_up():
    try:
        quote()
    except ValueError as error:
        raise GivenUp("ValueError at here.py:7") from error


@pytest.mark.parametrize(("function", "is_over"), [(quote, False), (give_up, True)])
def test_only_a_task_that_was_given_up_does_not_come_again(run, broker, function, is_over):
    """Through the monitor, which keeps the result and acknowledges the task."""
    results = SimpleQueue()
    results.put(run(function, ack_id=broker.enqueue("package"), started=timezone.now()))
    results.put("STOP")

    monitor(results, broker)

    assert (Failure.objects.count(), OrmQ.objects.count()) == (1, 0 if is_over else 1)


def test_of_a_task_that_was_given_up_the_reason_is_kept(run):
    assert run(give_up)["result"] == "ValueError at here.py:7"


def miss():
    raise OtherSchema("the default database lacks migration x.0001_y. Run: migrate")


def test_of_a_schema_of_another_version_what_to_do_is_told_alone(run):
    assert run(miss)["result"] == "the default database lacks migration x.0001_y. Run: migrate"


def test_a_result_is_left_as_it_is(run):
    assert run(int, "7")["result"] == 7

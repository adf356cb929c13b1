"""stega/tasks/failed_runs.py: what django-q2 keeps of a run that failed."""

from multiprocessing import SimpleQueue, Value

import pytest
from django.db import connections
from django_q import worker
from django_q.signals import post_execute_in_worker
from django_q.worker import worker as work

from accounts.models import User
from stega.tasks.failed_runs import keep_no_words

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "unheard-of"


@pytest.fixture
def run(monkeypatch):
    """The result that a worker passes on of a run of the function."""
    monkeypatch.setattr(worker, "error_reporter", None)
    keep_no_words()

    def run(function, *arguments):
        tasks, results = SimpleQueue(), SimpleQueue()
        tasks.put({"id": "1", "name": "one", "func": function, "args": arguments, "kwargs": {}})
        tasks.put("STOP")
        work(tasks, results, Value("f", -1), timeout=-1)
        return results.get()

    yield run
    post_execute_in_worker.disconnect(dispatch_uid="stega.tasks.failed_runs")


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


def test_a_result_is_left_as_it_is(run):
    assert run(int, "7")["result"] == 7

"""stega/outbox.py: a task that a database keeps waiting is tried again without end, at no cost."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connections

from stega import outbox
from stega.database.base import DatabaseWrapper
from stega.models import OutboxEntry
from stega.tasks.cluster import bound_task_waits, limit_patience
from tests.stega.outbox.entries import attempts_of
from tests.stega.outbox.tasks import hanging
from tests.support import servers
from tests.support.sessions import Session
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


@pytest.fixture
def as_task_worker(settings, monkeypatch):
    """Runs a function in a thread with connections of its own, made as a task worker makes them."""
    settings.Q_CLUSTER = settings.Q_CLUSTER | {"timeout": 1}
    for alias in ("default", "events"):
        monkeypatch.setitem(
            connections[alias].settings_dict, "OPTIONS", dict(connections[alias].settings_dict["OPTIONS"])
        )
    monkeypatch.setattr(DatabaseWrapper, "statement_seconds", None)
    bound_task_waits()

    def run(function, *args):
        def work():
            limit_patience()
            try:
                return function(*args)
            finally:
                connections.close_all()

        return pool.submit(work).result(timeout=10)

    pool = ThreadPoolExecutor(1)
    yield run
    connections.close_all()
    pool.shutdown()


def test_publishing_into_tables_that_another_session_has_locked_is_tried_again_without_end(late, queue, as_task_worker):
    OutboxEntry.objects.update(task="publish", args=[queue])
    with Session(servers.events.url(connections["events"].settings_dict["NAME"])) as holder:
        table = holder.value("select queue_data_pfx from pgque.queue where queue_name = %s", [queue])
        holder.rows(f"lock table {table} in access exclusive mode")
        for _ in range(7):
            with pytest.raises(OperationalError, match=r"(lock|statement) timeout"):
                as_task_worker(outbox.perform, str(late.key))
    late.refresh_from_db()
    before = (late.attempts, late.failed_at)

    result = as_task_worker(outbox.perform, str(late.key))

    assert before == (0, None)
    assert "event" in result


@pytest.mark.parametrize(("alias", "is_pooled"), [("default", False), ("events", False), ("events", True)])
def test_a_task_that_a_database_keeps_waiting_is_tried_again_without_end(late, settings, request, alias, is_pooled):
    settings.EVENTS_POOLED = is_pooled
    as_task_worker = request.getfixturevalue("as_task_worker")
    OutboxEntry.objects.update(task="wait_in", args=[alias])

    for _ in range(6):
        with pytest.raises(OperationalError, match=r"statement timeout|in time"):
            as_task_worker(outbox.perform, str(late.key))

    late.refresh_from_db()
    assert (late.attempts, late.failed_at) == (0, None)


def test_a_task_that_waits_for_a_table_of_default_is_tried_again_without_end_and_leaves_no_session_waiting(
    late, as_task_worker
):
    OutboxEntry.objects.update(task="count_products")
    with Session(servers.app.url(connections["default"].settings_dict["NAME"])) as holder:
        holder.rows("lock table tickets_product in access exclusive mode")
        for _ in range(6):
            with pytest.raises(OperationalError, match="in time"):
                as_task_worker(outbox.perform, str(late.key))
        wait_until(lambda: not holder.value("select count(*) from pg_locks where not granted"), timeout=5)
    late.refresh_from_db()
    before = (late.attempts, late.failed_at)

    result = as_task_worker(outbox.perform, str(late.key))

    assert before == (0, None)
    assert result == {"products": 0}


def test_a_run_during_which_default_began_to_hang_is_taken_back_with_the_workers_next_task(late, as_task_worker):
    OutboxEntry.objects.update(task="make_default_hang")
    with hanging, pytest.raises(OperationalError, match="in time"):
        as_task_worker(outbox.perform, str(late.key))

    as_task_worker(outbox.perform, str(uuid.uuid4()))

    assert attempts_of(late) == 0


def test_a_run_during_which_the_session_was_lost_costs_no_attempt(late, as_task_worker):
    OutboxEntry.objects.update(task="end_the_session")

    for _ in range(6):
        with pytest.raises(OperationalError, match="terminating connection"):
            as_task_worker(outbox.perform, str(late.key))

    assert attempts_of(late) == 0

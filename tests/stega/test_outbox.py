"""stega/outbox.py: what is promised in a transaction happens after it, and only then."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.db import InternalError, OperationalError, connections, transaction
from django.utils import timezone
from django_q.models import OrmQ

from stega import outbox
from stega.database.base import DatabaseWrapper
from stega.models import OutboxEntry
from stega.pgque import client
from stega.tasks.cluster import bound_task_waits, limit_patience
from tests.support import servers
from tests.support.sessions import Session
from tests.support.waiting import wait_until
from tickets.models import Product

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

performed: list[tuple] = []
hanging = ExitStack()
"""Servers that a task has made hang."""


def note(*args, event_key):
    performed.append((*args, event_key))
    return {"noted": list(args)}


def fail(*args, event_key):
    raise ValueError("bad \x00 \ud83d")


def find_it_in_other_hands(*args, event_key):
    raise outbox.InTurn


def end_the_worker(*args, event_key):
    raise SystemExit


def lose_the_database(*args, event_key):
    raise OperationalError("server closed the connection")


def meet_a_read_only_server(*args, event_key):
    error = InternalError("cannot execute INSERT in a read-only transaction")
    error.__cause__ = type("Cause", (Exception,), {"sqlstate": "25006"})()
    raise error


def publish(queue, *, event_key):
    return {"event": client.insert_event(queue, "ticket.welcome", {}, str(event_key))}


def wait_in(alias, *, event_key):
    with connections[alias].cursor() as cursor:
        cursor.execute("select pg_sleep(60)")


def count_products(*args, event_key):
    return {"products": Product.objects.count()}


def look_at_locks(*args, event_key):
    """Whether each session with an advisory lock on `events` is another than this, and in a transaction."""
    statement = """
        select pid <> pg_backend_pid() and xact_start is not null
        from pg_stat_activity join pg_locks using (pid) where locktype = 'advisory'
    """
    with connections["events"].cursor() as cursor:
        cursor.execute(statement)
        return {"are_of_transactions": [row[0] for row in cursor.fetchall()]}


def make_default_hang(*args, event_key):
    hanging.enter_context(servers.hanging(servers.app))
    Product.objects.count()


def end_the_session(*args, event_key):
    with connections["default"].cursor() as cursor:
        cursor.execute("select pg_terminate_backend(pg_backend_pid())")


@pytest.fixture(autouse=True)
def tasks(settings, monkeypatch):
    names = ("note", "fail", "end_the_worker", "lose_the_database", "meet_a_read_only_server")
    names += ("publish", "wait_in", "count_products", "make_default_hang", "end_the_session", "look_at_locks")
    names += ("find_it_in_other_hands",)
    settings.TASKS = django_settings.TASKS | {name: f"{__name__}.{name}" for name in names}
    settings.OUTBOX_FAST_PATH_SECONDS = 0
    monkeypatch.setattr(outbox, "_rest_until", 0.0)
    performed.clear()


@pytest.fixture
def entry():
    """An entry that is in the outbox and nowhere else."""
    return OutboxEntry.objects.create(key=uuid.uuid4(), task="note", args=[7])


def queued_keys():
    return {package.task["args"][0] for package in OrmQ.objects.all()}


def test_enqueue_outside_a_transaction_is_refused():
    with pytest.raises(transaction.TransactionManagementError):
        outbox.enqueue("note", 1)


def test_a_task_that_settings_do_not_name_is_refused():
    with pytest.raises(ValueError, match="'no_such_task'"), transaction.atomic():
        outbox.enqueue("no_such_task")


def test_after_the_commit_the_entry_is_with_django_q_and_marked():
    key = uuid.uuid4()

    with transaction.atomic():
        assert outbox.enqueue("note", 1, "two", key=key)
        assert OrmQ.objects.count() == 0

    assert queued_keys() == {str(key)}
    assert OutboxEntry.objects.get(key=key).relayed_at


def test_a_rollback_leaves_neither_entry_nor_task():
    def change_and_fail():
        with transaction.atomic():
            outbox.enqueue("note", 1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change_and_fail()

    assert not OutboxEntry.objects.exists()
    assert not OrmQ.objects.exists()


def test_the_same_key_is_promised_once():
    key = uuid.uuid4()
    with transaction.atomic():
        outbox.enqueue("note", 1, key=key)

    with transaction.atomic():
        again = outbox.enqueue("note", 1, key=key)

    assert not again
    assert OrmQ.objects.count() == 1


def test_two_transactions_promise_the_same_key_at_once_and_one_of_them_wrote_it():
    key, answers, barrier = uuid.uuid4(), [], threading.Barrier(2)

    def promise():
        try:
            barrier.wait(timeout=10)
            with transaction.atomic():
                answers.append(outbox.enqueue("note", 1, key=key))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=promise) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == [False, True]


def test_many_entries_go_in_one_statement(django_assert_num_queries):
    rows = [(uuid.uuid4(), (number,)) for number in range(50)]

    with transaction.atomic(), django_assert_num_queries(1):
        new = outbox.enqueue_many("note", rows)

    assert new == 50
    assert OutboxEntry.objects.count() == 50


def test_a_jobs_database_that_is_away_costs_the_change_nothing(monkeypatch):
    monkeypatch.setattr(outbox, "_enqueue_tasks", lambda task, keys: lose_the_database(event_key=None))

    with transaction.atomic():
        outbox.enqueue("note", 1)

    assert OutboxEntry.objects.get().relayed_at is None


def test_after_a_failure_the_fast_path_rests(monkeypatch):
    tries = []
    monkeypatch.setattr(outbox, "_enqueue_tasks", lambda task, keys: tries.append(keys) or 1 / 0)

    for number in range(3):
        with transaction.atomic():
            outbox.enqueue("note", number)

    assert len(tries) == 1


def test_a_hanging_jobs_database_costs_one_request_the_bounded_time(settings, monkeypatch):
    release = threading.Event()
    settings.OUTBOX_FAST_PATH_SECONDS = 0.05
    monkeypatch.setattr(outbox, "_enqueue_tasks", lambda task, keys: release.wait(60))

    with transaction.atomic():
        outbox.enqueue("note", 1)
    with transaction.atomic():
        outbox.enqueue("note", 2)

    assert OutboxEntry.objects.filter(relayed_at=None).count() == 2
    release.set()


def test_the_bounded_fast_path_relays_on_a_thread_of_its_own(settings):
    settings.OUTBOX_FAST_PATH_SECONDS = 30.0

    with transaction.atomic():
        outbox.enqueue("note", 1)

    assert OrmQ.objects.count() == 1


def test_the_sweep_relays_what_the_fast_path_missed(entry):
    OutboxEntry.objects.update(created_at=timezone.now() - timedelta(seconds=11))

    assert outbox.sweep() == {"relayed": 1}
    assert queued_keys() == {str(entry.key)}
    assert outbox.sweep() == {"relayed": 0}


def test_the_sweep_leaves_a_fresh_entry_to_the_fast_path(entry):
    assert outbox.sweep() == {"relayed": 0}


def test_an_entry_relayed_long_ago_and_never_done_is_relayed_again(entry):
    OutboxEntry.objects.update(relayed_at=timezone.now() - timedelta(seconds=901))

    assert outbox.sweep() == {"relayed": 1}


def test_entries_that_shared_a_task_which_was_never_done_are_relayed_one_by_one():
    with transaction.atomic():
        outbox.enqueue_many("note", [(uuid.uuid4(), (number,)) for number in range(3)])
    OutboxEntry.objects.update(relayed_at=timezone.now() - timedelta(seconds=901))
    OrmQ.objects.all().delete()

    outbox.sweep()

    assert [len(package.task["args"]) for package in OrmQ.objects.all()] == [1, 1, 1]


def test_an_entry_that_commits_late_is_not_overlooked_by_the_sweep(entry):
    """The order of ids is not the order of commits: a younger entry is swept first, then the older id appears."""
    OutboxEntry.objects.update(created_at=timezone.now() - timedelta(seconds=60))
    outbox.sweep()
    late = OutboxEntry(id=entry.id - 1, key=uuid.uuid4(), task="note", args=[8], created_at=entry.created_at)
    late.created_at = timezone.now() - timedelta(seconds=70)
    late.save(force_insert=True)

    assert outbox.sweep() == {"relayed": 1}


def test_performing_runs_the_task_with_its_arguments_and_key_and_marks_it_done(entry):
    assert outbox.perform(str(entry.key)) == {"noted": [7]}

    assert performed == [(7, entry.key)]
    entry.refresh_from_db()
    assert entry.done_at


def test_a_done_entry_is_not_performed_again(entry):
    outbox.perform(str(entry.key))

    assert outbox.perform(str(entry.key)) == {"skipped": "done or given up before"}
    assert len(performed) == 1


def test_an_entry_that_is_gone_is_skipped():
    assert outbox.perform(str(uuid.uuid4())) == {"skipped": "no such entry"}


@pytest.mark.parametrize("task", ["lose_the_database", "meet_a_read_only_server"])
def test_an_outage_is_tried_again_without_end(entry, task):
    OutboxEntry.objects.update(task=task)

    for _ in range(20):
        with pytest.raises((OperationalError, InternalError)):
            outbox.perform(str(entry.key))

    entry.refresh_from_db()
    assert (entry.attempts, entry.failed_at) == (0, None)


def test_a_fault_of_the_tasks_own_is_given_up_after_five_runs_with_its_error(entry):
    OutboxEntry.objects.update(task="fail")

    for _ in range(4):
        with pytest.raises(ValueError, match="bad"):
            outbox.perform(str(entry.key))
    result = outbox.perform(str(entry.key))

    entry.refresh_from_db()
    assert "failed" in result
    assert entry.attempts == 5
    assert entry.failed_at
    assert "ValueError" in entry.last_error


def test_a_task_whose_workers_never_come_back_is_given_up(entry):
    OutboxEntry.objects.update(task="end_the_worker", relayed_at=timezone.now() - timedelta(minutes=5))

    for _ in range(5):
        with pytest.raises(SystemExit):
            outbox.perform(str(entry.key))
    result = outbox.perform(str(entry.key))

    entry.refresh_from_db()
    assert "failed" in result
    assert entry.failed_at
    assert "TASK_TIMEOUT_SECONDS" in entry.last_error


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


def test_publishing_into_tables_that_another_session_has_locked_is_tried_again_without_end(
    entry, queue, as_task_worker
):
    OutboxEntry.objects.update(task="publish", args=[queue], relayed_at=timezone.now() - timedelta(minutes=5))
    with Session(servers.events.url(connections["events"].settings_dict["NAME"])) as holder:
        table = holder.value("select queue_data_pfx from pgque.queue where queue_name = %s", [queue])
        holder.rows(f"lock table {table} in access exclusive mode")
        for _ in range(7):
            with pytest.raises(OperationalError, match=r"(lock|statement) timeout"):
                as_task_worker(outbox.perform, str(entry.key))
    entry.refresh_from_db()
    before = (entry.attempts, entry.failed_at)

    result = as_task_worker(outbox.perform, str(entry.key))

    assert before == (0, None)
    assert "event" in result


@pytest.mark.parametrize(("alias", "is_pooled"), [("default", False), ("events", False), ("events", True)])
def test_a_task_that_a_database_keeps_waiting_is_tried_again_without_end(entry, settings, request, alias, is_pooled):
    settings.EVENTS_POOLED = is_pooled
    as_task_worker = request.getfixturevalue("as_task_worker")
    OutboxEntry.objects.update(task="wait_in", args=[alias], relayed_at=timezone.now() - timedelta(minutes=5))

    for _ in range(6):
        with pytest.raises(OperationalError, match=r"statement timeout|in time"):
            as_task_worker(outbox.perform, str(entry.key))

    entry.refresh_from_db()
    assert (entry.attempts, entry.failed_at) == (0, None)


def test_a_task_that_waits_for_a_table_of_default_is_tried_again_without_end_and_leaves_no_session_waiting(
    entry, as_task_worker
):
    OutboxEntry.objects.update(task="count_products", relayed_at=timezone.now() - timedelta(minutes=5))
    with Session(servers.app.url(connections["default"].settings_dict["NAME"])) as holder:
        holder.rows("lock table tickets_product in access exclusive mode")
        for _ in range(6):
            with pytest.raises(OperationalError, match="in time"):
                as_task_worker(outbox.perform, str(entry.key))
        wait_until(lambda: not holder.value("select count(*) from pg_locks where not granted"), timeout=5)
    entry.refresh_from_db()
    before = (entry.attempts, entry.failed_at)

    result = as_task_worker(outbox.perform, str(entry.key))

    assert before == (0, None)
    assert result == {"products": 0}


def test_a_run_during_which_default_began_to_hang_is_taken_back_with_the_workers_next_task(entry, as_task_worker):
    late = timezone.now() - timedelta(minutes=5)
    OutboxEntry.objects.update(task="make_default_hang", relayed_at=late)
    with hanging, pytest.raises(OperationalError, match="in time"):
        as_task_worker(outbox.perform, str(entry.key))

    as_task_worker(outbox.perform, str(uuid.uuid4()))

    assert attempts_of(entry) == 0


def test_a_run_during_which_the_session_was_lost_costs_no_attempt(entry, as_task_worker):
    OutboxEntry.objects.update(task="end_the_session", relayed_at=timezone.now() - timedelta(minutes=5))

    for _ in range(6):
        with pytest.raises(OperationalError, match="terminating connection"):
            as_task_worker(outbox.perform, str(entry.key))

    assert attempts_of(entry) == 0


def attempts_of(entry):
    return OutboxEntry.objects.get(key=entry.key).attempts


@pytest.fixture
def late(entry):
    """The entry, after a backlog."""
    OutboxEntry.objects.update(relayed_at=timezone.now() - timedelta(minutes=5))
    return entry


@pytest.mark.parametrize("alias", ["jobs", "events"])
def test_a_worker_that_is_cut_while_a_database_does_not_answer_costs_a_late_entry_no_attempt(late, alias):
    with connections[alias].execute_wrapper(end_the_worker_at_a_query), pytest.raises(SystemExit):
        outbox.perform(str(late.key))

    assert attempts_of(late) == 0


def end_the_worker_at_a_query(*args):
    raise SystemExit


def test_a_late_entry_cut_after_others_of_its_task_is_not_charged_with_it(late):
    before = OutboxEntry.objects.create(key=uuid.uuid4(), task="fail", relayed_at=late.relayed_at)
    OutboxEntry.objects.filter(key=late.key).update(task="end_the_worker")

    with pytest.raises(SystemExit):
        outbox.perform(str(before.key), str(late.key))

    assert (attempts_of(before), attempts_of(late)) == (1, 0)


def test_a_late_entry_is_charged_when_those_before_it_in_its_task_are_through(late):
    through = {"done_at": timezone.now()}, {"failed_at": timezone.now()}
    before = [OutboxEntry.objects.create(key=uuid.uuid4(), task="fail", **moment) for moment in through]
    OutboxEntry.objects.filter(key=late.key).update(task="end_the_worker")

    with pytest.raises(SystemExit):
        outbox.perform(*(str(each.key) for each in before), str(late.key))

    assert attempts_of(late) == 1


@pytest.mark.parametrize("is_pooled", [False, True])
def test_the_last_run_of_a_late_entry_is_not_made_beside_that_of_another(late, settings, is_pooled):
    """The other may kill the worker of this one, as it may have done each time before."""
    settings.EVENTS_POOLED = is_pooled
    OutboxEntry.objects.update(attempts=4)
    with Session(servers.events.url(connections["events"].settings_dict["NAME"])) as other:
        other.rows("select pg_advisory_lock(hashtext('stega last run'))")
        with pytest.raises(outbox.InTurn):
            outbox.perform(str(late.key))
    beside = attempts_of(late)

    result = outbox.perform(str(late.key))

    assert (beside, result) == (4, {"noted": [7]})


def test_during_its_last_run_an_entry_holds_the_lock_of_no_session(late):
    """Which a pooler would keep, and nobody could take back."""
    OutboxEntry.objects.update(attempts=4, task="look_at_locks")

    result = outbox.perform(str(late.key))

    assert result == {"are_of_transactions": [True]}


def test_after_a_last_run_the_next_entry_has_its_turn(late):
    OutboxEntry.objects.update(attempts=4)
    outbox.perform(str(late.key))

    with Session(servers.events.url(connections["events"].settings_dict["NAME"])) as other:
        is_free = other.value("select pg_try_advisory_lock(hashtext('stega last run'))")

    assert is_free


def test_a_task_that_must_wait_for_another_comes_again_and_no_attempt_is_counted(entry):
    OutboxEntry.objects.update(task="find_it_in_other_hands", attempts=4)

    with pytest.raises(outbox.InTurn):
        outbox.perform(str(entry.key))

    entry.refresh_from_db()
    assert (entry.attempts, entry.done_at, entry.failed_at) == (4, None, None)


@pytest.mark.parametrize(("task", "counted"), [("lose_the_database", 0), ("find_it_in_other_hands", 0), ("fail", 1)])
def test_a_late_run_that_fails_is_counted_as_any_other(entry, task, counted):
    OutboxEntry.objects.update(task=task, relayed_at=timezone.now() - timedelta(minutes=5))

    with pytest.raises((OperationalError, outbox.InTurn, ValueError)):
        outbox.perform(str(entry.key))

    entry.refresh_from_db()
    assert entry.attempts == counted


def test_many_entries_share_tasks(monkeypatch):
    monkeypatch.setattr(outbox, "PAGE", 2)

    with transaction.atomic():
        outbox.enqueue_many("note", [(uuid.uuid4(), (number,)) for number in range(5)])

    pages = [package.task["args"] for package in OrmQ.objects.all()]
    for page in pages:
        outbox.perform(*page)
    assert sorted(map(len, pages)) == [1, 2, 2]
    assert sorted(number for number, _ in performed) == [0, 1, 2, 3, 4]


def test_a_fault_of_one_entry_does_not_hold_up_those_that_share_its_task(entry):
    bad = OutboxEntry.objects.create(key=uuid.uuid4(), task="fail")

    with pytest.raises(ValueError, match="bad"):
        outbox.perform(str(bad.key), str(entry.key))

    entry.refresh_from_db()
    assert entry.done_at


def test_pruning_keeps_what_is_open_failed_or_young(entry):
    long_ago = timezone.now() - timedelta(days=31)
    old = OutboxEntry.objects.create(key=uuid.uuid4(), task="note", done_at=long_ago)
    failed = OutboxEntry.objects.create(key=uuid.uuid4(), task="note", failed_at=long_ago)
    young = OutboxEntry.objects.create(key=uuid.uuid4(), task="note", done_at=timezone.now())

    assert outbox.prune() == {"pruned": 1}
    assert set(OutboxEntry.objects.values_list("key", flat=True)) == {entry.key, failed.key, young.key}
    assert not OutboxEntry.objects.filter(key=old.key).exists()


@pytest.mark.parametrize("days", [29, 31])
def test_what_was_let_be_is_pruned_by_its_end(transactional_db, days):
    ended_at = timezone.now() - timedelta(days=days)
    OutboxEntry.objects.create(
        key=uuid.uuid4(), task="note", failed_at=timezone.now() - timedelta(days=99), done_at=ended_at
    )

    assert outbox.prune() == {"pruned": int(days > 30)}


@pytest.mark.parametrize("fields", [{}, {"done_at": timezone.now()}], ids=["open", "done"])
def test_only_what_was_given_up_can_be_let_be(entry, fields):
    OutboxEntry.objects.update(**fields)

    assert OutboxEntry.objects.settle(OutboxEntry.objects.values("pk")) == 0


def test_what_was_let_be_neither_runs_nor_is_tried_again(entry):
    OutboxEntry.objects.update(failed_at=timezone.now())
    OutboxEntry.objects.settle(OutboxEntry.objects.values("pk"))

    reopened = OutboxEntry.objects.reopen(OutboxEntry.objects.values("pk"))

    assert reopened == 0
    assert outbox.perform(str(entry.key)) == {"skipped": "done or given up before"}

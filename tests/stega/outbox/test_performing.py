"""stega/outbox.py: a task runs until it is done, or is given up for a fault of its own."""

import uuid

import pytest
from django.db import InternalError, OperationalError, ProgrammingError

from stega import outbox
from stega.database import mismatch
from stega.database.mismatch import OtherSchema
from stega.models import OutboxEntry
from tests.stega.outbox.tasks import performed

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def test_performing_runs_the_task_with_its_arguments_and_key_and_marks_it_done(entry):
    assert outbox.perform(str(entry.key)) == {"noted": [7]}

    assert performed == [(7, entry.key)]
    entry.refresh_from_db()
    assert entry.done_at


def test_a_done_entry_is_not_performed_again(entry):
    outbox.perform(str(entry.key))

    assert outbox.perform(str(entry.key)) == {"skipped": "done or let be before"}
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


def test_a_column_that_comes_with_a_migration_is_waited_for_without_end(entry, monkeypatch):
    monkeypatch.setitem(mismatch.differences, "default", lambda: "the default database lacks migration x.0001_y")
    OutboxEntry.objects.update(task="ask_for_a_column_that_is_not_there")

    for _ in range(20):
        with pytest.raises(OtherSchema):
            outbox.perform(str(entry.key))

    entry.refresh_from_db()
    assert (entry.attempts, entry.failed_at) == (0, None)


@pytest.mark.parametrize(
    ("task", "fault", "told"),
    [
        ("fail", ValueError, "ValueError at "),
        ("ask_for_a_column_that_is_not_there", ProgrammingError, "ProgrammingError 42703 at "),
    ],
    ids=["a bug", "a column that no migration brings"],
)
def test_a_fault_of_the_tasks_own_is_given_up_after_five_runs_with_its_error(entry, task, fault, told):
    OutboxEntry.objects.update(task=task)

    for _ in range(4):
        with pytest.raises(fault):
            outbox.perform(str(entry.key))
    with pytest.raises(outbox.GivenUp, match=told):
        outbox.perform(str(entry.key))

    entry.refresh_from_db()
    assert entry.attempts == 5
    assert entry.failed_at
    assert told in entry.last_error


def test_a_task_whose_workers_never_come_back_is_given_up(late):
    OutboxEntry.objects.update(task="end_the_worker")

    for _ in range(5):
        with pytest.raises(SystemExit):
            outbox.perform(str(late.key))
    with pytest.raises(outbox.GivenUp, match="TASK_TIMEOUT_SECONDS"):
        outbox.perform(str(late.key))

    late.refresh_from_db()
    assert late.failed_at
    assert "TASK_TIMEOUT_SECONDS" in late.last_error


def test_a_task_that_must_wait_for_another_comes_again_and_no_attempt_is_counted(entry):
    OutboxEntry.objects.update(task="find_it_in_other_hands", attempts=4)

    with pytest.raises(outbox.InTurn):
        outbox.perform(str(entry.key))

    entry.refresh_from_db()
    assert (entry.attempts, entry.done_at, entry.failed_at) == (4, None, None)


def test_a_fault_of_one_entry_does_not_hold_up_those_that_share_its_task(entry):
    bad = OutboxEntry.objects.create(key=uuid.uuid4(), task="fail")

    with pytest.raises(ValueError, match="bad"):
        outbox.perform(str(bad.key), str(entry.key))

    entry.refresh_from_db()
    assert entry.done_at


def test_a_run_with_an_entry_that_was_given_up_has_failed_however_often_it_comes(entry):
    bad = OutboxEntry.objects.create(key=uuid.uuid4(), task="fail", attempts=4)

    for _ in range(2):
        with pytest.raises(outbox.GivenUp):
            outbox.perform(str(bad.key), str(entry.key))

    bad.refresh_from_db()
    assert (bad.attempts, len(performed)) == (5, 1)


def test_a_task_comes_again_for_an_entry_that_may_be_tried_again_beside_one_that_was_given_up():
    rows = [OutboxEntry.objects.create(key=uuid.uuid4(), task="fail", attempts=attempts) for attempts in (4, 0)]

    with pytest.raises(ValueError, match="bad"):
        outbox.perform(*(str(row.key) for row in rows))


def test_the_log_says_that_a_task_was_given_up(entry, caplog):
    OutboxEntry.objects.update(task="fail", attempts=4)

    with pytest.raises(outbox.GivenUp):
        outbox.perform(str(entry.key))

    assert f"Task fail of entry {entry.key} given up: ValueError at " in caplog.text

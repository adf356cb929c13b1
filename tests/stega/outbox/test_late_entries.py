"""stega/outbox.py: a run of a late entry may end its worker, and is counted before it begins."""

import uuid

import pytest
from django.db import OperationalError, connections
from django.utils import timezone

from stega import outbox
from stega.models import OutboxEntry
from tests.stega.outbox.entries import attempts_of
from tests.support import servers
from tests.support.sessions import Session

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def end_the_worker_at_a_query(*args):
    raise SystemExit


@pytest.mark.parametrize("alias", ["jobs", "events"])
def test_a_worker_that_is_cut_while_a_database_does_not_answer_costs_a_late_entry_no_attempt(late, alias):
    with connections[alias].execute_wrapper(end_the_worker_at_a_query), pytest.raises(SystemExit):
        outbox.perform(str(late.key))

    assert attempts_of(late) == 0


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


@pytest.mark.parametrize(("task", "counted"), [("lose_the_database", 0), ("find_it_in_other_hands", 0), ("fail", 1)])
def test_a_late_run_that_fails_is_counted_as_any_other(late, task, counted):
    OutboxEntry.objects.update(task=task)

    with pytest.raises((OperationalError, outbox.InTurn, ValueError)):
        outbox.perform(str(late.key))

    assert attempts_of(late) == counted


@pytest.mark.parametrize("failed", [0, 3])
def test_a_late_run_that_ends_well_is_no_failed_attempt(late, failed):
    OutboxEntry.objects.update(attempts=failed)

    outbox.perform(str(late.key))

    assert attempts_of(late) == failed

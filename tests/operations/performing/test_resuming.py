from datetime import timedelta

import pytest
from django.utils import timezone

from operations import performing
from operations.models import Kind, OperatorAction, State
from operations.performing import perform
from stega import outbox
from stega.models import OutboxEntry
from tests.operations.performing.standing import CAUSE, WORKER, left, lose_the_lease, state_of
from tests.support.letters import bury

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def test_what_waits_for_the_first_letter_is_resumed_by_the_schedule(group, ask, consume):
    action = ask(Kind.REPLAY_GROUP, group)
    perform(action)
    consume()
    OperatorAction.objects.update(looked_at=timezone.now() - timedelta(minutes=1))

    resumed = [performing.resume(), performing.resume()]
    for key in OutboxEntry.objects.filter(task="perform_operator_action").values_list("key", flat=True):
        outbox.perform(str(key))

    assert resumed == [{"resumed": 1}, {"resumed": 0}]
    assert state_of(action) == State.DONE


def test_a_large_group_is_done_in_batches_by_several_tasks(group, ask, monkeypatch):
    monkeypatch.setattr(performing, "BATCH", 6)
    action = ask(Kind.PURGE_GROUP, group)

    first = perform(action, seconds=0)
    after_first = left(group)
    entries = 0
    while entry := OutboxEntry.objects.open().filter(task="perform_operator_action").first():
        outbox.perform(str(entry.key))
        entries += 1

    assert first["state"] == State.RUNNING
    assert after_first == 14
    assert (state_of(action), left(group)) == (State.DONE, 0)
    assert entries >= 1


def test_two_workers_do_not_work_on_one_action(group, ask):
    action = ask(Kind.PURGE_GROUP, group)
    OperatorAction.objects.claim(action, timedelta(minutes=1))

    with pytest.raises(outbox.InTurn):
        perform(action)

    assert left(group) == 20


def test_a_task_that_finds_the_action_in_other_hands_comes_back_when_they_have_died(group, ask, promise):
    action = ask(Kind.PURGE_GROUP, group)
    entry = promise(action)
    OperatorAction.objects.claim(action, timedelta(minutes=1))

    with pytest.raises(outbox.InTurn):
        outbox.perform(entry)
    lose_the_lease()
    outbox.perform(entry)

    assert (state_of(action), left(group)) == (State.DONE, 0)


@pytest.mark.parametrize("state", [State.REQUESTED, State.RUNNING, State.WAITING])
def test_an_action_left_by_a_dead_worker_and_promised_by_no_entry_is_resumed_by_the_schedule(group, ask, state):
    action = ask(Kind.PURGE_GROUP, group)
    OperatorAction.objects.update(state=state, looked_at=timezone.now() - timedelta(minutes=1))
    lose_the_lease()

    resumed = performing.resume()
    outbox.perform(str(OutboxEntry.objects.get(task="perform_operator_action").key))

    assert resumed == {"resumed": 1}
    assert (state_of(action), left(group)) == (State.DONE, 0)


def test_an_action_in_a_living_workers_hands_is_not_resumed(group, ask):
    action = ask(Kind.PURGE_GROUP, group)
    OperatorAction.objects.claim(action, timedelta(minutes=1))

    assert performing.resume() == {"resumed": 0}


@pytest.mark.parametrize("of_entry", [{}, {"failed_at": timezone.now()}], ids=["open", "given up"])
def test_an_action_whose_entry_comes_again_or_waits_for_an_operator_is_not_promised_twice(
    group, ask, promise, of_entry
):
    promise(ask(Kind.PURGE_GROUP, group), **of_entry)
    lose_the_lease()

    assert performing.resume() == {"resumed": 0}


def test_an_action_whose_own_entry_was_let_be_is_over_and_may_be_asked_for_again(group, ask, promise):
    action = ask(Kind.PURGE_GROUP, group)
    promise(action, failed_at=timezone.now(), done_at=timezone.now())
    lose_the_lease()

    resumed = performing.resume()

    assert resumed == {"resumed": 0}
    assert (state_of(action), OperatorAction.objects.get().outcome) == (State.STOPPED, performing.LET_BE)
    assert state_of(ask(Kind.PURGE_GROUP, group)) == State.REQUESTED


def test_an_action_whose_worker_died_is_taken_up_when_its_lease_is_over(group, ask):
    action = ask(Kind.PURGE_GROUP, group)
    OperatorAction.objects.claim(action, timedelta(seconds=-1))

    perform(action)

    assert (state_of(action), left(group)) == (State.DONE, 0)


def test_a_finished_action_is_done_no_more(group, ask, queue):
    action = ask(Kind.PURGE_GROUP, group)
    perform(action)
    bury(queue, WORKER, CAUSE, count=3)

    perform(action)

    assert left(group) == 3

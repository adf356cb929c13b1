from datetime import timedelta

import pytest
from django.utils import timezone

from operations import performing
from operations.models import Kind, OperatorAction, State
from operations.performing import perform
from stega.pgque import client, oversight
from stega.pgque.message import Rejected, RetryLater
from tests.operations.performing.standing import CAUSE, WORKER, left, state_of
from tests.support.event_log import tick
from tests.support.letters import bury

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def test_the_first_letter_goes_alone_until_its_consumer_has_handled_it(group, ask):
    action = ask(Kind.REPLAY_GROUP, group)

    perform(action)

    assert (state_of(action), left(group)) == (State.WAITING, 19)


def test_the_others_follow_when_the_first_was_handled(group, ask, consume, handler):
    action = ask(Kind.REPLAY_GROUP, group)
    perform(action)
    consume()

    perform(action)
    consume()

    assert (state_of(action), left(group)) == (State.DONE, 0)
    assert len(handler.handled) == 20
    assert OperatorAction.objects.get().touched == 20


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [(Rejected(CAUSE), performing.FAILED_AGAIN), (RetryLater("not now", seconds=60), performing.WAITS_AGAIN)],
)
def test_the_others_are_left_alone_when_the_first_fails_again(group, ask, consume, handler, fault, outcome):
    handler.fault = fault
    action = ask(Kind.REPLAY_GROUP, group)
    perform(action)
    consume()

    perform(action)

    assert (state_of(action), OperatorAction.objects.get().outcome) == (State.STOPPED, outcome)
    assert left(group) >= 19


def test_the_reason_of_the_first_ones_failure_is_told(group, ask, consume, handler):
    handler.fault = Rejected("the mailbox is full")
    action = ask(Kind.REPLAY_GROUP, group)
    perform(action)
    consume()

    perform(action)

    assert OperatorAction.objects.get().detail == "the mailbox is full"


def test_the_rest_stops_when_the_same_failure_comes_back_on_the_way(group, ask, consume, handler, monkeypatch):
    monkeypatch.setattr(performing, "BATCH", 5)
    action = ask(Kind.REPLAY_GROUP, group)
    perform(action)
    consume()
    replay = oversight.replay_dead_letters

    def replay_and_fail(*args):
        sent = replay(*args)
        handler.fault = Rejected(CAUSE)
        consume()
        return sent

    monkeypatch.setattr(oversight, "replay_dead_letters", replay_and_fail)

    perform(action)

    assert (state_of(action), OperatorAction.objects.get().touched) == (State.STOPPED, 6)
    assert OperatorAction.objects.get().outcome == performing.FAILS_STILL


def test_a_consumer_that_does_not_come_ends_the_waiting(group, ask):
    action = ask(Kind.REPLAY_GROUP, group)
    perform(action)
    OperatorAction.objects.update(probed_at=timezone.now() - performing.PROBE_PATIENCE - timedelta(seconds=1))

    perform(action)

    assert (state_of(action), OperatorAction.objects.get().outcome) == (State.STOPPED, performing.NOT_TAKEN)


def test_a_member_with_the_first_letter_in_hand_is_waited_for(queue, ask):
    client.subscribe_subconsumer(queue, "workers", "one")
    bury(queue, "workers", CAUSE, count=3)
    group = {"queue": queue, "consumer": "workers", "type": "ticket.welcome", "cause": CAUSE}
    action = ask(Kind.REPLAY_GROUP, group)
    perform(action)
    tick(queue)
    batch = client.next_batch_coop(queue, "workers", "one", timedelta(minutes=2))

    perform(action)
    in_hand = state_of(action)
    client.ack(batch)
    perform(action)

    assert (in_hand, state_of(action)) == (State.WAITING, State.DONE)


def test_a_letter_that_fails_again_is_not_sent_a_third_time(group, ask, consume, handler, queue):
    action = ask(Kind.REPLAY_GROUP, group)
    perform(action)
    consume()
    bury(queue, WORKER, "another cause")

    perform(action)

    assert OperatorAction.objects.get().touched == 20
    assert left({**group, "cause": "another cause"}) == 1

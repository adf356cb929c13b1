"""operations/performing.py: one first, then the rest; batches; outages; one worker at a time."""

import uuid
from datetime import timedelta

import pytest
from django.db import OperationalError, connections
from django.utils import timezone

from accounts.roles import Role
from notifications.models import Delivery
from operations import performing
from operations.facts import actions
from operations.facts.reading import read
from operations.models import Kind, OperatorAction, State
from operations.performing import perform
from operations.targets import TARGETS
from stega import outbox
from stega.models import OutboxEntry
from stega.pgque import client, oversight
from stega.pgque.consumer import Consumer
from stega.pgque.message import Rejected, RetryLater
from tests.factories import make_user
from tests.support.event_log import tick
from tests.support.letters import bury

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

WORKER = "notification_worker"
CAUSE = "no such mailbox"


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(performing, "PROBE_LOOKS_SECONDS", 0.0)


@pytest.fixture
def handler():
    """A handler that does what a test tells it to; the ids it has handled."""

    class Handler:
        def __init__(self):
            self.handled = []
            self.fault = None

        def __call__(self, message):
            if self.fault:
                raise self.fault
            self.handled.append(message.id)

    return Handler()


@pytest.fixture
def consume(queue, handler):
    """Let the consumer handle all that was sent so far."""
    consumer = Consumer(WORKER, {"ticket.welcome": handler})
    client.subscribe(queue, WORKER)

    def consume():
        tick(queue)
        consumer.run(until_idle=True)

    return consume


@pytest.fixture
def group(queue, consume):
    bury(queue, WORKER, CAUSE, count=20)
    return {"queue": queue, "consumer": WORKER, "type": "ticket.welcome", "cause": CAUSE}


@pytest.fixture
def ask(transactional_db):
    """An action as the console records it."""
    operator = make_user("operator", Role.ADMIN)

    def ask(kind, target):
        extent = TARGETS[kind].count(target, None)
        return OperatorAction.objects.create(
            kind=kind, actor=operator, target=target, count=extent.count, up_to=extent.up_to, reason="why"
        ).pk

    return ask


@pytest.fixture
def promise(transactional_db):
    """The key of an outbox entry that works on an action."""

    def promise(action, **values):
        entry = OutboxEntry.objects.create(key=uuid.uuid4(), task="perform_operator_action", args=[action], **values)
        return str(entry.key)

    return promise


def lose_the_lease():
    OperatorAction.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))


def state_of(action):
    return OperatorAction.objects.get(pk=action).state


def left(group):
    return oversight.count_dead_letters(group, 2**62, 10_000)


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


def test_a_letter_that_fails_again_is_not_sent_a_third_time(group, ask, consume, handler, queue):
    action = ask(Kind.REPLAY_GROUP, group)
    perform(action)
    consume()
    bury(queue, WORKER, "another cause")

    perform(action)

    assert OperatorAction.objects.get().touched == 20
    assert left({**group, "cause": "another cause"}) == 1


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


def test_while_the_event_log_is_away_the_task_stays_queued(group, ask, monkeypatch):
    action = ask(Kind.PURGE_GROUP, group)
    entry = OutboxEntry.objects.create(key=uuid.uuid4(), task="perform_operator_action", args=[action])
    connections["events"].close()
    monkeypatch.setitem(connections["events"].settings_dict, "HOST", "/nowhere")

    with pytest.raises(Exception, match="nowhere"):
        outbox.perform(str(entry.key))
    monkeypatch.undo()
    outbox.perform(str(entry.key))

    assert (state_of(action), left(group)) == (State.DONE, 0)


def test_a_fault_of_our_own_is_named_on_the_record_and_quoted_nowhere(group, ask, monkeypatch, caplog):
    action = ask(Kind.PURGE_GROUP, group)

    words = "postgresql://somebody:password@host"

    def fail(*args):
        raise LookupError(words)

    monkeypatch.setattr(oversight, "purge_dead_letters", fail)

    perform(action)

    assert state_of(action) == State.FAILED
    assert OperatorAction.objects.get().detail.startswith("LookupError at ")
    assert "somebody" not in caplog.text


def test_what_the_engine_refuses_ends_the_action_with_its_words(group, ask, queue):
    action = ask(Kind.REPLAY_GROUP, group)
    with connections["events"].cursor() as cursor:
        cursor.execute("update pgque.queue set queue_disable_insert = true where queue_name = %s", [queue])

    perform(action)

    assert (state_of(action), OperatorAction.objects.get().outcome) == (State.FAILED, performing.REFUSED)
    assert OperatorAction.objects.get().detail == "Insert into queue disallowed"
    assert left(group) == 20


def test_a_dead_letter_of_a_member_that_left_can_be_replayed(queue, ask):
    """ST-133."""
    client.subscribe_subconsumer(queue, "workers", "one")
    client.subscribe_subconsumer(queue, "workers", "two")
    client.insert_event(queue, "ticket.welcome", {}, str(uuid.uuid4()))
    tick(queue)
    batch = client.next_batch_coop(queue, "workers", "one", timedelta(minutes=2))
    for event in client.batch_events(batch, 10):
        client.event_dead(batch, event, CAUSE)
    client.ack(batch)
    client.unsubscribe_subconsumer(queue, "workers", "one")
    letter = oversight.last_dead_letter(
        {"queue": queue, "consumer": "workers", "type": "ticket.welcome", "cause": CAUSE}
    )
    action = ask(Kind.REPLAY_LETTER, {"id": str(letter)})

    perform(action)

    assert OperatorAction.objects.get().touched == 1


def still():
    return read(actions.question()).value.longest_still


def age():
    """Let all have been asked for an hour ago, though the database refuses that."""
    with connections["default"].cursor() as cursor:
        cursor.execute("alter table operations_operatoraction disable trigger operations_keep_action")
        OperatorAction.objects.update(requested_at=timezone.now() - timedelta(hours=1))
        cursor.execute("alter table operations_operatoraction enable trigger operations_keep_action")


def test_an_action_that_is_only_tried_stands_still_and_one_that_goes_on_or_is_over_does_not(group, ask, monkeypatch):
    before = still()
    action = ask(Kind.PURGE_GROUP, group)
    age()
    with monkeypatch.context() as during:
        during.setattr(oversight, "purge_dead_letters", away)
        with pytest.raises(OperationalError):
            perform(action)
    tried = still()
    perform(action, seconds=0)
    moved = still()
    perform(action)

    assert (before, still()) == (None, None)
    assert tried > timedelta(minutes=59)
    assert moved < timedelta(minutes=1)


def away(*args):
    raise OperationalError("connection refused")


def given_up(keys):
    """Rows of the ledger that say so, of letters' events and of one more."""
    for key in [*keys, uuid.uuid4()]:
        Delivery.objects.create(
            event_key=key, event_type="ticket.welcome", channel="email", recipient="user:1", state="given_up"
        )


def reopened():
    return set(Delivery.objects.filter(state="pending").values_list("event_key", flat=True))


def test_who_was_given_up_is_told_after_all_when_the_letter_is_replayed(group, ask):
    oldest, another = oversight.oldest_dead_letters(group, 2**62, 2)
    given_up(oversight.keys_of([oldest, another]))
    expected = oversight.keys_of([oldest])

    perform(ask(Kind.REPLAY_LETTER, {"id": str(oldest)}))

    assert reopened() == expected


def test_who_was_given_up_is_told_after_all_when_the_group_is_replayed(group, ask, consume):
    keys = oversight.keys_of(oversight.oldest_dead_letters(group, 2**62, 20))
    given_up(keys)
    action = ask(Kind.REPLAY_GROUP, group)

    perform(action)
    probed = reopened()
    consume()
    perform(action)
    perform(action)

    assert len(probed) == 1
    assert reopened() == keys

import uuid
from datetime import timedelta

import pytest

from notifications.models import Delivery
from operations.models import Kind, OperatorAction
from operations.performing import perform
from stega.pgque import client, oversight
from tests.operations.performing.standing import CAUSE
from tests.support.event_log import tick

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


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

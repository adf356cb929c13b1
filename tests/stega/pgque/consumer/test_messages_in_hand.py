"""stega/pgque/consumer.py: a message that processes die of is found, and an outage is no death."""

import pytest
from django.db import OperationalError

from stega.models import MessageInHand
from stega.pgque import client
from tests.stega.pgque.consumer.recording import send
from tests.support.event_log import dead_letters

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def leave_open(queue, consumer, died_of):
    """The state after a process died with the batch open, and died of these event ids again since."""
    client.next_batch(queue, consumer)
    for number, event_id in enumerate(died_of):
        (event,) = [each for each in client.batch_events(client.open_batch(queue, consumer), 10) if each.id == event_id]
        MessageInHand.objects.note(queue, consumer, event.id, event.created_at, f"dead-{number}")


def ids(queue):
    batch = client.next_batch(queue, "notification_worker")
    return [event.id for event in client.batch_events(batch, 10)]


def test_a_message_that_three_processes_died_of_is_a_dead_letter_and_its_neighbours_go_on(queue, consumer, recorder):
    send(queue, 1, 2, 3)
    killer = ids(queue)[1]
    leave_open(queue, "notification_worker", [killer, killer])

    consumer.run(until_idle=True)

    assert dead_letters(queue) == {killer: "3 workers died of this message"}
    assert recorder.users == [1, 3]
    assert not MessageInHand.objects.exists()


def test_a_message_that_two_processes_died_of_gets_another_try_and_is_forgotten_when_done(queue, consumer, recorder):
    send(queue, 1, 2, 3)
    leave_open(queue, "notification_worker", [ids(queue)[1]])

    consumer.run(until_idle=True)

    assert recorder.users == [1, 2, 3]
    assert not MessageInHand.objects.exists()


def test_two_killers_in_one_batch_are_both_found(queue, consumer, recorder):
    send(queue, 1, 2, 3)
    first, second, _ = ids(queue)
    leave_open(queue, "notification_worker", [first, first, first, second, second])

    consumer.run(until_idle=True)

    assert set(dead_letters(queue)) == {first, second}
    assert recorder.users == [3]


def test_an_outage_is_no_death_of_the_process_that_waits_it_out(queue, consumer, recorder):
    send(queue, 1)
    leave_open(queue, "notification_worker", [])
    recorder.raising = {1: [OperationalError("away")] * 5}

    for _ in range(5):
        with pytest.raises(OperationalError):
            consumer.run(until_idle=True)
    consumer.run(until_idle=True)

    assert dead_letters(queue) == {}
    assert recorder.users == [1] * 6


def test_a_batch_that_nobody_left_open_is_noted_nowhere(queue, consumer, recorder, monkeypatch):
    monkeypatch.setattr(MessageInHand.objects.__class__, "note", lambda *args: pytest.fail("noted"))
    send(queue, 1)
    consumer.run(until_idle=True)
    send(queue, 2)

    consumer.run(until_idle=True)

    assert recorder.users == [1, 2]

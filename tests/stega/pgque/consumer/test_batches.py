"""stega/pgque/consumer.py: whole batches, acknowledged in the end, through outages and stops."""

import uuid

import pytest
from django.db import OperationalError, ProgrammingError, connections

from stega.pgque import client
from stega.pgque.consumer import Consumer
from stega.pgque.message import RetryLater
from stega.processes.process import TryAgain
from tests.stega.pgque.consumer.recording import WELCOME, each_of, fail_with, send
from tests.support.event_log import dead_letters, retries, tick
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


@pytest.mark.parametrize("page", [1, 20, 54, 55, 56])
def test_every_event_of_a_batch_is_handled_whatever_the_page(queue, recorder, page):
    client.subscribe(queue, "notification_worker")
    send(queue, *range(55))

    Consumer("notification_worker", {"ticket.welcome": recorder}, page=page).run(until_idle=True)

    assert recorder.users == list(range(55))


def test_an_acked_batch_does_not_come_again(queue, consumer, recorder):
    send(queue, 1)

    consumer.run(until_idle=True)
    consumer.run(until_idle=True)

    assert recorder.users == [1]


def test_a_message_carries_its_key_its_attempt_and_its_payload(queue, consumer, recorder):
    key = uuid.uuid4()
    client.insert_event(queue, "ticket.welcome", WELCOME | {"display_name": 'Zoë "💎"'}, str(key))
    tick(queue)

    consumer.run(until_idle=True)

    (message,) = recorder.messages
    assert (message.key, message.attempt, message.payload["display_name"]) == (key, 1, 'Zoë "💎"')


def test_an_outage_in_a_handler_leaves_the_batch_open_and_burns_no_retry(queue, consumer, recorder):
    recorder.raising = {2: [OperationalError("the app database is away")]}
    send(queue, 1, 2, 3)

    with pytest.raises(OperationalError):
        consumer.run(until_idle=True)
    consumer.run(until_idle=True)

    assert recorder.users == [1, 2, 2, 3]
    assert (retries(queue), dead_letters(queue)) == ([], {})


def test_a_batch_whose_ack_fails_comes_again_and_its_done_messages_are_not_handled_again(
    queue, consumer, recorder, monkeypatch
):
    recorder.raising = {2: [RetryLater("busy")]}
    send(queue, 1, 2, 3)
    real_ack, failures = client.ack, [OperationalError("cut")]
    monkeypatch.setattr(client, "ack", lambda batch: real_ack(batch) if not failures else fail_with(failures.pop()))

    with pytest.raises(TryAgain):
        consumer.run(until_idle=True)
    assert retries(queue) == []
    consumer.run(until_idle=True)

    assert recorder.users == [1, 2, 3]
    assert len(retries(queue)) == 1


def test_a_failing_nack_leaves_the_batch_unacked(queue, consumer, recorder, monkeypatch):
    recorder.raising = {2: [RetryLater("busy")]}
    send(queue, 1, 2, 3)
    monkeypatch.setattr(client, "nack", lambda *args: fail_with(OperationalError("timeout")))

    with pytest.raises(TryAgain):
        consumer.run(until_idle=True)

    assert client.next_batch(queue, "notification_worker") is not None


def test_an_ack_that_is_refused_again_and_again_is_tried_at_a_growing_pace(queue, consumer, recorder, monkeypatch):
    waits = []
    monkeypatch.setattr(client, "ack", lambda batch: fail_with(ProgrammingError("permission denied for function ack")))
    monkeypatch.setattr(consumer, "wait", lambda seconds: (waits.append(seconds), len(waits) == 6 and consumer.stop()))
    send(queue, 1)

    consumer.run()

    assert recorder.users == [1]
    assert len(waits) == 6
    assert min(waits) >= 0.1
    assert max(waits) > 0.2


def test_a_stop_leaves_the_rest_of_the_batch_for_the_next_start(queue, consumer, recorder):
    send(queue, 1, 2, 3)
    seen_by_the_first = []
    consumer.handlers = {"ticket.welcome": lambda message: (seen_by_the_first.append(message), consumer.stop())}

    consumer.run()
    Consumer("notification_worker", {"ticket.welcome": recorder}).run(until_idle=True)

    assert len(seen_by_the_first) == 1
    assert recorder.users == [1, 2, 3]


def test_after_an_outage_it_catches_up_though_another_leads_by_then(queue, consumer, monkeypatch):
    caught_up = []
    consumer.catch_up = lambda: caught_up.append(len(waits))
    waits = []
    monkeypatch.setattr(consumer, "wait", lambda seconds: (waits.append(seconds), len(waits) == 2 and consumer.stop()))
    monkeypatch.setattr(consumer._leadership, "held", each_of([OperationalError("gone"), False, False]))

    consumer.run()

    assert caught_up == [0, 1, 2]


def test_an_outage_that_hinders_catching_up_is_waited_out(queue, consumer, recorder, monkeypatch):
    outage = OperationalError("gone")
    answers = [None, outage, None, None]
    consumer.catch_up = each_of(answers)
    monkeypatch.setattr(consumer, "wait", lambda seconds: recorder.users and consumer.stop())
    monkeypatch.setattr(consumer._leadership, "held", each_of([outage, True, True, True]))
    send(queue, 1)

    consumer.run()

    assert (recorder.users, answers) == ([1], [])


def test_an_empty_batch_does_not_stop_the_way_to_the_next_event(queue, consumer, recorder):
    for _ in range(200):
        tick(queue)
    send(queue, 1)

    consumer.run(until_idle=True)

    assert recorder.users == [1]


def test_a_second_plain_consumer_stands_by_while_the_first_lives(queue, consumer, recorder):
    with connections["events"].copy().cursor() as other:
        other.execute(
            "select pg_advisory_lock(hashtext('stega'), hashtext(%s))", [f"consumer {queue} notification_worker"]
        )
        send(queue, 1)

        assert consumer.step() is False
        other.connection.close()

    wait_until(consumer._leadership.held, timeout=5)
    consumer.run(until_idle=True)
    assert recorder.users == [1]

"""operations/ways.py: how far each consumer is with an event."""

import uuid
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone
from django_q.models import Task

from operations import ways
from stega import outbox
from stega.models import OutboxEntry
from stega.pgque import client, oversight
from tests.support.event_log import make_retries_due, tick

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

KEY = uuid.UUID("7f9c24e8-3b12-4fef-91e0-cd6a1f1ba3b0")


@pytest.fixture
def sent(queue):
    """An event of the key, and one of another."""
    client.subscribe(queue, "audit")
    client.insert_event(queue, "ticket.welcome", {}, str(uuid.uuid4()))
    client.insert_event(queue, "ticket.welcome", {"user_id": 1}, str(KEY))


def states():
    """Consumer -> state, of each event of the key."""
    return [{reader.consumer: reader.state for reader in event.readers} for event in ways.way(KEY).log.value.events]


def finish(queue, do=lambda batch, event: None):
    tick(queue)
    batch = client.next_batch(queue, "audit")
    for event in client.batch_events(batch, 10):
        if event.extra1 == str(KEY):
            do(batch, event)
    client.ack(batch)


def test_an_event_waits_is_in_hand_and_is_handled(queue, sent):
    waiting = states()
    tick(queue)
    batch = client.next_batch(queue, "audit")
    in_hand = states()
    client.ack(batch)

    assert [waiting, in_hand, states()] == [[{"audit": "waiting"}], [{"audit": "in_hand"}], [{"audit": "handled"}]]


def test_an_event_comes_again_and_is_handled_at_its_second_delivery(queue, sent):
    finish(queue, lambda batch, event: client.event_retry(batch, event.id, 60))
    again = states()
    make_retries_due(queue)
    waiting = states()
    finish(queue)

    (event,) = ways.way(KEY).log.value.events
    assert [again, waiting, states()] == [[{"audit": "retry"}], [{"audit": "waiting"}], [{"audit": "handled"}]]
    assert event.readers[0].deliveries == 2


def test_an_event_that_was_given_up_leads_to_its_dead_letter(queue, sent):
    finish(queue, lambda batch, event: client.event_dead(batch, event, "no such mailbox"))

    (event,) = ways.way(KEY).log.value.events

    assert (event.readers[0].state, event.readers[0].reason) == ("dead", "no such mailbox")
    assert [letter["dl_id"] for letter in ways.way(KEY).log.value.letters] == [event.readers[0].letter]


def test_a_replayed_event_is_a_second_one_of_the_same_key(queue, sent):
    finish(queue, lambda batch, event: client.event_dead(batch, event, "no such mailbox"))
    oversight.replay_dead_letter(ways.way(KEY).log.value.letters[0]["dl_id"])

    assert states() == [{"audit": "handled"}, {"audit": "waiting"}]


def test_a_group_has_an_event_in_hand_while_a_member_has(queue):
    client.subscribe_subconsumer(queue, "workers", "one")
    client.insert_event(queue, "ticket.welcome", {}, str(KEY))
    tick(queue)
    batch = client.next_batch_coop(queue, "workers", "one", timedelta(minutes=2))
    in_hand = states()
    client.ack(batch)

    assert [in_hand, states()] == [[{"workers": "in_hand"}], [{"workers": "handled"}]]


def test_an_event_is_looked_for_among_what_was_sent_after_its_entry_was_written(queue, sent):
    entry = OutboxEntry.objects.create(key=KEY, task="send_welcome_notification", args=[1])
    OutboxEntry.objects.filter(pk=entry.pk).update(created_at=timezone.now() - timedelta(hours=1))
    tick(queue)
    tick(queue)
    before = states()
    OutboxEntry.objects.filter(pk=entry.pk).update(created_at=timezone.now() + timedelta(hours=1))

    after = states()

    assert (before, after) == ([{"audit": "waiting"}], [])


@pytest.mark.parametrize("written_ago", [timedelta(seconds=5), timedelta(minutes=30)])
def test_a_tick_that_waited_with_an_early_time_hides_no_event(queue, sent, written_ago):
    """Its time is that of its transaction's beginning, before the event; its snapshot came after."""
    entry = OutboxEntry.objects.create(key=KEY, task="send_welcome_notification", args=[1])
    OutboxEntry.objects.filter(pk=entry.pk).update(created_at=timezone.now() - written_ago)
    tick(queue)
    with connections["events"].cursor() as cursor:
        cursor.execute(
            """
            update pgque.tick set tick_time = now() - 2 * %s - (newest - tick_id) * interval '1 s'
            from (
                select queue_id, (select max(tick_id) from pgque.tick where tick_queue = queue_id) as newest
                from pgque.queue where queue_name = %s
            ) q
            where tick_queue = queue_id
            """,
            [written_ago, queue],
        )

    assert states() == [{"audit": "waiting"}]


@pytest.fixture
def shared_run():
    """An entry that was done in one run with two others, and runs of others that were not asked for."""
    now = timezone.now()
    entry = OutboxEntry.objects.create(key=KEY, task="send_welcome_notification", args=[1], done_at=now)

    def ran(id, keys, *, success=True, ended_ago=timedelta()):
        name = f"send_welcome_notification of {len(keys)} entries"
        times = {"started": now - ended_ago - timedelta(seconds=2), "stopped": now - ended_ago + timedelta(seconds=1)}
        Task.objects.create(id=id, name=name, func="stega.outbox.perform", args=keys, success=success, **times)

    ran("mine", (str(uuid.uuid4()), str(KEY), str(uuid.uuid4())))
    ran("others", (str(uuid.uuid4()), str(uuid.uuid4())))
    ran("failed before", (str(KEY), str(uuid.uuid4())), success=False, ended_ago=timedelta(minutes=20))
    OutboxEntry.objects.filter(pk=entry.pk).update(created_at=now - timedelta(hours=1))
    return entry


@pytest.mark.parametrize("ended", ["done_at", "failed_at", None])
def test_a_run_that_did_several_entries_is_found_by_each_of_them(shared_run, ended):
    OutboxEntry.objects.update(**{"done_at": None, "failed_at": None} | ({ended: timezone.now()} if ended else {}))

    runs = ways.way(KEY).tasks.value

    is_open = ended is None
    assert [(run.is_success, run.others) for run in runs] == [(False, 1)] + [(True, 2)] * (not is_open)


def test_the_runs_of_an_entry_that_was_let_be_later_are_found(shared_run, monkeypatch):
    monkeypatch.setattr(ways, "LEEWAY", timedelta(seconds=5))
    OutboxEntry.objects.update(failed_at=timezone.now(), done_at=timezone.now() + timedelta(days=1))

    runs = ways.way(KEY).tasks.value

    assert [run.others for run in runs] == [1, 2]


def test_what_the_outbox_relays_together_is_found(monkeypatch):
    """The name of the task is the outbox's own."""
    relayed = []
    monkeypatch.setattr(outbox, "async_task", lambda *args, task_name: relayed.append((args[1:], task_name)))
    with transaction.atomic():
        outbox.enqueue_many("send_welcome_notification", [(KEY, [1]), (uuid.uuid4(), [2])])
    OutboxEntry.objects.update(created_at=timezone.now() - timedelta(hours=1), relayed_at=None)
    outbox.sweep()
    keys, name = relayed[-1]
    now = timezone.now()
    OutboxEntry.objects.update(done_at=now)
    Task.objects.create(id="x", name=name, func="x", args=keys, success=True, started=now, stopped=now)

    assert [run.others for run in ways.way(KEY).tasks.value] == [1]


def test_a_key_that_nobody_knows_is_unknown():
    assert ways.way(uuid.uuid4()).is_unknown


def test_a_key_is_not_unknown_while_a_database_is_away(monkeypatch):
    connections["jobs"].close()
    monkeypatch.setitem(connections["jobs"].settings_dict, "HOST", "/nowhere")

    assert not ways.way(uuid.uuid4()).is_unknown

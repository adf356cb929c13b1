"""stega/pgque/ticker.py: each duty when it is due; one instance leads."""

from datetime import timedelta

import pytest
from django.db import InternalError, connections

from stega.pgque import client
from stega.pgque.ticker import Ticker
from tests.support.event_log import retries, tick

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

CALLS = ("ticker", "maint", "maint_retry_events", "maint_rotate_tables_step2")


@pytest.fixture
def due_queue(queue):
    """A queue with an event that waits for a tick, and a consumer."""
    client.set_queue_config(queue, "ticker_max_lag", "1 milliseconds")
    client.subscribe(queue, "reader")
    client.insert_event(queue, "ticket.welcome", {}, "")
    return queue


def refuse(*args):
    raise InternalError("Invalid PgQ state")


def troubles(caplog):
    return [record.message for record in caplog.records if record.levelname == "WARNING"]


def test_once_means_each_duty_once_and_makes_a_batch_of_what_was_sent(queue):
    client.set_queue_config(queue, "ticker_max_lag", "1 milliseconds")
    client.subscribe(queue, "reader")
    client.insert_event(queue, "ticket.welcome", {}, "")

    Ticker().run(until_idle=True)

    batch = client.next_batch(queue, "reader")
    assert [event.type for event in client.batch_events(batch, 10)] == ["ticket.welcome"]


def test_every_due_retry_is_back_after_one_round(queue):
    client.set_queue_config(queue, "ticker_max_lag", "1 milliseconds")
    client.subscribe(queue, "reader")
    client.send_batch(queue, "ticket.welcome", ["{}"] * 300)
    tick(queue)
    batch = client.next_batch(queue, "reader")
    with connections["events"].cursor() as cursor:
        cursor.execute("select count(pgque.event_retry(%s, ev_id, 0)) from pgque.get_batch_events(%s)", [batch, batch])
    client.ack(batch)

    Ticker().run(until_idle=True)

    with connections["events"].cursor() as cursor:
        cursor.execute("select count(*) from pgque.retry_queue")
        assert cursor.fetchone() == (0,)


def test_both_steps_of_rotation_are_taken(queue, monkeypatch):
    calls = []
    for name in CALLS:
        monkeypatch.setattr(client, name, lambda name=name: calls.append(name) or 0)

    Ticker().run(until_idle=True)

    assert calls == ["ticker", "maint_retry_events", "maint", "maint_rotate_tables_step2"]


def test_a_duty_that_is_not_due_waits(monkeypatch, queue):
    now = [100.0]
    ticker = Ticker()
    ticker.clock = lambda: now[0]
    calls = []
    for name in CALLS:
        monkeypatch.setattr(client, name, lambda name=name: calls.append(name) or 0)
    ticker.step()
    calls.clear()

    now[0] += 0.15
    ticker.step()

    assert calls == ["ticker"]


def test_the_pace_is_quick_while_events_flow_and_slow_when_idle(monkeypatch, queue):
    now, ticked = [100.0], [1]
    monkeypatch.setattr(client, "ticker", lambda: ticked[0])
    ticker = Ticker(interval=0.02, idle_interval=0.1)
    ticker.clock = lambda: now[0]

    ticker.step()
    quick = ticker.idle_seconds()
    ticked[0] = 0
    now[0] += 3
    ticker.step()

    assert quick == pytest.approx(0.02)
    assert ticker.idle_seconds() == pytest.approx(0.1)


def test_a_second_ticker_stands_by(queue, monkeypatch):
    calls = []
    monkeypatch.setattr(client, "ticker", lambda: calls.append(1) or 0)
    with connections["events"].copy().cursor() as other:
        other.execute("select pg_advisory_lock(hashtext('stega'), hashtext('ticker'))")

        Ticker().step()

        assert calls == []
        other.connection.close()


def test_a_call_for_all_queues_that_fails_is_made_queue_by_queue(due_queue, monkeypatch):
    monkeypatch.setattr(client, "ticker", refuse)

    Ticker().run(until_idle=True)

    assert client.next_batch(due_queue, "reader") is not None


def test_a_queue_that_cannot_be_ticked_is_named_once_and_the_others_tick(due_queue, monkeypatch, caplog):
    bad, real = f"{due_queue}-bad", client.tick
    client.create_queue(bad)
    monkeypatch.setattr(client, "ticker", refuse)
    monkeypatch.setattr(client, "tick", lambda queue: refuse() if queue == bad else real(queue))
    ticker = Ticker()

    for _ in range(3):
        ticker._tick()

    with connections["events"].cursor() as cursor:
        cursor.execute("select pgque.drop_queue(%s)", [bad])
    assert client.next_batch(due_queue, "reader") is not None
    assert troubles(caplog) == [f"tick of queue {bad} failed: Invalid PgQ state"]


def test_a_duty_that_is_refused_holds_up_no_other(queue, monkeypatch, caplog):
    calls = []
    for name in CALLS:
        monkeypatch.setattr(client, name, lambda name=name: calls.append(name) or 0)
    monkeypatch.setattr(client, "maint_retry_events", refuse)

    Ticker().run(until_idle=True)

    assert calls == ["ticker", "maint", "maint_rotate_tables_step2"]
    assert troubles(caplog) == ["retries failed: Invalid PgQ state"]


def test_a_consumer_that_holds_up_rotation_is_named_once(due_queue, monkeypatch, caplog):
    with connections["events"].cursor() as cursor:
        cursor.execute(
            "update pgque.queue set queue_switch_time = now() - interval '3 hours', queue_rotation_period = '1 hour'"
            " where queue_name = %s",
            [due_queue],
        )
        cursor.execute(
            "update pgque.tick set tick_time = now() - interval '4 hours' where tick_queue = "
            "(select queue_id from pgque.queue where queue_name = %s)",
            [due_queue],
        )
    ticker = Ticker()

    ticker._name_blockers()
    ticker._name_blockers()

    assert troubles(caplog) == [f"queue {due_queue} cannot rotate its tables and grows: it waits for reader"]


def test_a_member_that_is_long_silent_is_removed_and_its_batch_comes_again(due_queue, settings):
    client.subscribe_subconsumer(due_queue, "reader", "gone")
    client.subscribe_subconsumer(due_queue, "reader", "live")
    Ticker().run(until_idle=True)
    assert client.next_batch_coop(due_queue, "reader", "gone", timedelta(minutes=2)) is not None
    with connections["events"].cursor() as cursor:
        cursor.execute("update pgque.subscription set sub_active = now() - interval '2 hours' where sub_batch > 0")

    Ticker().run(until_idle=True)

    names = [row["consumer_name"] for row in client.consumer_info() if row["queue_name"] == due_queue]
    assert names == ["reader", "reader.live"]
    assert len(retries(due_queue)) == 1
    client.unsubscribe_subconsumer(due_queue, "reader", "live")

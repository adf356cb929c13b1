"""stega/pgque/ticker.py: each duty when it is due; one instance leads."""

import pytest
from django.db import connections

from stega.pgque import client
from stega.pgque.ticker import Ticker
from tests.support.event_log import tick

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def pending(queue, consumer):
    return client.next_batch(queue, consumer)


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
    for name in ("ticker", "maint", "maint_retry_events", "maint_rotate_tables_step2"):
        monkeypatch.setattr(client, name, lambda name=name: calls.append(name) or 0)

    Ticker().run(until_idle=True)

    assert calls == ["ticker", "maint_retry_events", "maint", "maint_rotate_tables_step2"]


def test_a_duty_that_is_not_due_waits(monkeypatch, queue):
    now = [100.0]
    ticker = Ticker()
    ticker.clock = lambda: now[0]
    calls = []
    for name in ("ticker", "maint", "maint_retry_events", "maint_rotate_tables_step2"):
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

"""A rotation beside sessions that send, read or stay open: nothing is truncated unread."""

import psycopg
import pytest

from tests.support.engine import (
    ack,
    drain,
    receive,
    rotate,
    send,
    tick,
)


def test_a_repeatable_read_producer_around_a_rotation_loses_nothing(sql, session, queue, consumer):
    producer = session()
    producer.connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    producer.value("select queue_cur_table from pgque.queue where queue_name = %s", [queue])

    rotate(sql, queue)
    send(producer, queue, "late")
    producer.commit()
    tick(sql, queue)

    assert drain(sql, queue, consumer) == ["late"]


def test_an_event_in_the_wrong_table_is_not_truncated_before_it_is_read(sql, session, queue, consumer):
    producer = session()
    first_table = sql.value("select pgque.current_event_table(%s)", [queue])
    assert rotate(sql, queue) == 1
    assert rotate(sql, queue) == 2
    producer.rows(f"insert into {first_table} (ev_id, ev_time, ev_data) values (1, now(), 'late')")

    assert rotate(sql, queue) == 2
    producer.commit()
    assert rotate(sql, queue) == 2
    tick(sql, queue)

    assert drain(sql, queue, consumer) == ["late"]
    assert rotate(sql, queue) == 0


def test_code_that_sends_follows_its_queue(sql, session, queue, consumer):
    running = session()
    send(running, queue, "a")
    running.commit()
    rotate(sql, queue)
    current = sql.value("select pgque.current_event_table(%s)", [queue])

    send(running, queue, "b")
    running.commit()

    assert sql.value(f"select ev_data from {current}") == "b"
    sql.rows("update pgque.queue set queue_disable_insert = true where queue_name = %s", [queue])
    with pytest.raises(psycopg.errors.RaiseException, match="Insert into queue disallowed"):
        send(running, queue, "c")


def test_a_long_transaction_elsewhere_does_not_hold_up_rotation(sql, session, queue, consumer):
    elsewhere = session()
    elsewhere.value("select pg_current_xact_id()::text")

    tables = []
    for payload in "abcd":
        send(sql, queue, payload)
        tick(sql, queue)
        drain(sql, queue, consumer)
        tables.append(rotate(sql, queue))

    assert tables == [1, 2, 0, 1]


def test_a_window_read_while_a_rotation_waits_is_whole(sql, session, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    reader = session()
    messages = receive(reader, queue, consumer)
    rotate(sql, queue)
    rotate(sql, queue)

    assert rotate(sql, queue) == 2
    ack(reader, messages[0][1])
    reader.commit()

    assert rotate(sql, queue) == 0


def test_a_tick_being_subscribed_to_outlives_rotations(sql, session, queue):
    subscriber = session()
    subscriber.rows("select pgque.subscribe(%s, 'late')", [queue])
    send(sql, queue, "a")
    tick(sql, queue)
    for _ in range(3):
        rotate(sql, queue)
        tick(sql, queue)
    subscriber.commit()

    assert drain(sql, queue, "late") is not None

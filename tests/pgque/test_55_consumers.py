"""Subscribing and unsubscribing."""

import psycopg
import pytest

from tests.support.engine import ack, drain, nack, receive, rotate, send, send_batches, tick


def test_a_consumer_is_subscribed_once(sql, queue):
    assert sql.value("select pgque.subscribe(%s, 'c')", [queue]) == 1
    assert sql.value("select pgque.register_consumer(%s, 'c')", [queue]) == 0


def test_a_new_consumer_sees_what_is_sent_after_the_newest_tick(sql, queue):
    send(sql, queue, "before")
    tick(sql, queue)
    send(sql, queue, "unticked")
    sql.rows("select pgque.subscribe(%s, 'c')", [queue])
    send(sql, queue, "after")
    tick(sql, queue)

    assert drain(sql, queue, "c") == ["unticked", "after"]


def test_every_consumer_sees_every_event(sql, queue):
    for name in "ab":
        sql.rows("select pgque.subscribe(%s, %s)", [queue, name])
    send(sql, queue, "1", "2")
    tick(sql, queue)

    assert [drain(sql, queue, name) for name in "ab"] == [["1", "2"], ["1", "2"]]


def test_a_consumer_may_start_at_an_older_tick_and_move(sql, queue):
    send_batches(sql, queue, "12")

    assert sql.value("select pgque.register_consumer_at(%s, 'c', 2)", [queue]) == 1
    assert drain(sql, queue, "c") == ["2"]
    assert sql.value("select pgque.register_consumer_at(%s, 'c', 1)", [queue]) == 0
    assert drain(sql, queue, "c") == ["1", "2"]


def test_moving_a_cursor_drops_the_open_batch(sql, queue, consumer):
    send(sql, queue, "1")
    tick(sql, queue)
    batch = receive(sql, queue, consumer)[0][1]

    sql.rows("select pgque.register_consumer_at(%s, 'reader', 2)", [queue])

    assert ack(sql, batch) == 0
    assert receive(sql, queue, consumer) == []


def test_one_can_subscribe_to_a_queue_that_lay_idle_over_rotations(sql, queue):
    for _ in range(4):
        rotate(sql, queue)

    assert sql.value("select pgque.subscribe(%s, 'c')", [queue]) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("subscribe('nowhere', 'c')", "Event queue not created yet"),
        ("register_consumer_at('{queue}', 'c', 99)", "cannot reposition, tick not found: 99"),
    ],
)
def test_a_wrong_call_is_refused_with_the_words_of_the_contract(sql, queue, call, message):
    with pytest.raises(psycopg.errors.RaiseException) as refusal:
        sql.rows(f"select pgque.{call.format(queue=queue)}")

    assert refusal.value.diag.message_primary == message


def test_a_queue_without_ticks_cannot_be_subscribed_to(sql, queue):
    sql.rows("delete from pgque.tick using pgque.queue where tick_queue = queue_id and queue_name = %s", [queue])

    with pytest.raises(
        psycopg.errors.RaiseException, match=r"No ticks for this queue\.  Please run ticker on database\."
    ):
        sql.rows("select pgque.subscribe(%s, 'c')", [queue])


def test_unsubscribing_takes_the_retries_and_the_dead_letters_along(sql, queue):
    name = f"c {queue}"
    sql.rows("select pgque.subscribe(%s, %s)", [queue, name])
    send(sql, queue, "1", "2")
    tick(sql, queue)
    messages = receive(sql, queue, name)
    nack(sql, messages[0][1], messages[0][0])
    sql.rows("select pgque.set_queue_config(%s, 'max_retries', '0')", [queue])
    nack(sql, messages[1][1], messages[1][0])

    assert sql.value("select pgque.unsubscribe(%s, %s)", [queue, name]) == 1
    assert sql.value("select pgque.unregister_consumer(%s, %s)", [queue, name]) == 0
    assert sql.rows("select * from pgque.dlq_inspect(%s)", [queue]) == []
    assert (
        sql.value(
            "select count(*) from pgque.retry_queue join pgque.queue on ev_queue = queue_id where queue_name = %s",
            [queue],
        )
        == 0
    )
    assert sql.value("select count(*) from pgque.consumer where co_name = %s", [name]) == 0

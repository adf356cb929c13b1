"""Dead letters: kept whole, replayed to the right reader."""

import psycopg
import pytest

from tests.support.engine import ack, drain, join, nack, receive, receive_coop, send, tick


@pytest.fixture
def letters(sql, queue, consumer):
    """The ids of three dead letters of the reader: a, b, c."""
    sql.rows("select pgque.set_queue_config(%s, 'max_retries', '0')", [queue])
    send(sql, queue, "a", "b", "c")
    tick(sql, queue)
    for message in (messages := receive(sql, queue, consumer)):
        nack(sql, message[1], message[0], reason=f"no {message[3]}")
    ack(sql, messages[0][1])
    return [row[0] for row in sql.rows("select dl_id from pgque.dlq_inspect(%s) order by dl_id", [queue])]


def test_a_letter_keeps_the_event_and_the_reason(sql, queue, letters):
    rows = sql.rows("select dl_reason, ev_id, ev_type, ev_data, ev_retry from pgque.dlq_inspect(%s)", [queue])

    assert rows == [("no c", 3, "noted", "c", None), ("no b", 2, "noted", "b", None), ("no a", 1, "noted", "a", None)]
    assert len(sql.rows("select * from pgque.dlq_inspect(%s, 2)", [queue])) == 2


def test_the_reason_has_a_default(sql, queue, consumer):
    sql.rows("select pgque.set_queue_config(%s, 'max_retries', '0')", [queue])
    send(sql, queue, "a")
    tick(sql, queue)
    [message] = receive(sql, queue, consumer)

    nack(sql, message[1], message[0])
    nack(sql, message[1], message[0], reason="twice")

    assert sql.rows("select dl_reason from pgque.dlq_inspect(%s)", [queue]) == [("max retries exceeded",)]


def test_an_unknown_queue_has_no_letters(sql):
    assert sql.rows("select * from pgque.dlq_inspect('nowhere')") == []


def test_a_letter_is_replayed_to_the_consumer_that_gave_it_up_alone(sql, queue, consumer, letters):
    sql.rows("select pgque.subscribe(%s, 'neighbour')", [queue])

    event_id = sql.value("select pgque.dlq_replay(%s)", [letters[1]])
    tick(sql, queue)
    [message] = receive(sql, queue, consumer)

    assert (message[0], message[3], message[4]) == (event_id, "b", None)
    assert event_id > 3
    assert drain(sql, queue, "neighbour") == []
    assert len(sql.rows("select * from pgque.dlq_inspect(%s)", [queue])) == 2


def test_a_letter_is_replayed_once(sql, letters):
    sql.rows("select pgque.dlq_replay(%s)", [letters[0]])

    with pytest.raises(psycopg.errors.RaiseException, match=f"dead letter entry not found: {letters[0]}"):
        sql.rows("select pgque.dlq_replay(%s)", [letters[0]])


def test_a_letter_of_a_consumer_that_left_stays_until_it_is_back(sql, queue, letters):
    sql.rows("select pgque.create_queue('other ' || %s)", [queue])
    sql.rows("select pgque.subscribe('other ' || %s, 'reader')", [queue])
    sql.rows("select pgque.unsubscribe(%s, 'reader')", [queue])

    with pytest.raises(psycopg.errors.RaiseException, match="consumer not registered"):
        sql.rows("select pgque.dlq_replay(%s)", [letters[0]])
    sql.rows("select pgque.subscribe(%s, 'reader')", [queue])
    sql.rows("select pgque.dlq_replay(%s)", [letters[0]])

    tick(sql, queue)
    assert drain(sql, queue, "reader") == ["a"]
    sql.rows("select pgque.drop_queue('other ' || %s, true)", [queue])


def test_all_letters_are_replayed_and_failures_are_counted(sql, queue, consumer, letters):
    sql.rows("update pgque.queue set queue_disable_insert = true where queue_name = %s", [queue])
    failed = sql.rows("select * from pgque.dlq_replay_all(%s)", [queue])
    sql.rows("update pgque.queue set queue_disable_insert = false where queue_name = %s", [queue])
    replayed = sql.rows("select * from pgque.dlq_replay_all(%s)", [queue])
    tick(sql, queue)

    assert failed == [(0, 3, f"dl_id={letters[0]}: Insert into queue disallowed")]
    assert replayed == [(3, 0, None)]
    assert drain(sql, queue, consumer) == ["a", "b", "c"]


def test_old_letters_are_purged(sql, queue, letters):
    sql.rows("update pgque.dead_letter set dl_time = now() - interval '31 days' where dl_id = %s", [letters[0]])

    assert sql.value("select pgque.dlq_purge(%s)", [queue]) == 1
    assert sql.value("select pgque.dlq_purge(%s, '0 seconds')", [queue]) == 2


def test_an_event_may_be_buried_at_once(sql, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    [message] = receive(sql, queue, consumer)
    call = "select pgque.event_dead(%s, %s, 'rotten', now(), null, 2, 'kind', 'data', 'x')"

    assert [sql.value(call, [message[1], message[0]]) for _ in range(2)] == [1, 1]
    assert sql.rows("select ev_id, dl_reason, ev_retry, ev_extra1 from pgque.dlq_inspect(%s)", [queue]) == [
        (message[0], "rotten", 2, "x")
    ]
    with pytest.raises(psycopg.errors.RaiseException, match="batch not found: -1"):
        sql.rows(call, [-1, 1])


def test_letters_of_a_member_outlive_it_and_come_back_to_the_group(sql, queue):
    sql.rows("select pgque.set_queue_config(%s, 'max_retries', '0')", [queue])
    join(sql, queue, "group", "ab")
    send(sql, queue, "1")
    tick(sql, queue)
    [message] = receive_coop(sql, queue, "group", "a")
    nack(sql, message[1], message[0])
    ack(sql, message[1])

    sql.rows("select pgque.unsubscribe_subconsumer(%s, 'group', 'a')", [queue])
    sql.rows("select * from pgque.dlq_replay_all(%s)", [queue])
    tick(sql, queue)

    assert [m[3] for m in receive_coop(sql, queue, "group", "b")] == ["1"]


def test_a_failing_trigger_on_the_letters_undoes_the_whole_call(sql, queue, letters):
    sql.rows(
        "create or replace function public.refuse() returns trigger language plpgsql as"
        " $$ begin raise exception 'refused'; end $$"
    )
    sql.rows("create trigger refuse before insert on pgque.dead_letter for each row execute function public.refuse()")
    send(sql, queue, "d")
    tick(sql, queue)
    [message] = receive(sql, queue, "reader")
    try:
        with pytest.raises(psycopg.errors.RaiseException, match="refused"):
            nack(sql, message[1], message[0])
    finally:
        sql.rows("drop trigger refuse on pgque.dead_letter")

    assert receive(sql, queue, "reader") == [message]

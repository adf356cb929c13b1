"""Several sessions receive, acknowledge and commit late: who waits, and that nothing is lost or told twice."""

from tests.support.engine import (
    ack,
    age_rotation,
    current_table,
    drain,
    nack,
    payloads,
    receive,
    send,
    tick,
)


def test_a_second_session_of_a_consumer_waits_and_gets_the_same_batch(sql, session, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    one, two = session(), session(autocommit=True)
    first = receive(one, queue, consumer)

    waiting = two.start_blocked("select * from pgque.receive(%s, %s)", [queue, consumer])
    one.commit()

    assert waiting.result() == first


def test_a_session_that_waited_for_an_ack_gets_the_next_batch(sql, session, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    send(sql, queue, "b")
    tick(sql, queue)
    one, two = session(), session(autocommit=True)
    ack(one, receive(one, queue, consumer)[0][1])

    waiting = two.start_blocked("select * from pgque.receive(%s, %s)", [queue, consumer])
    one.commit()

    assert payloads(waiting.result()) == ["b"]


def test_a_session_that_waited_for_the_last_ack_gets_nothing(sql, session, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    one, two = session(), session(autocommit=True)
    ack(one, receive(one, queue, consumer)[0][1])

    waiting = two.start_blocked("select * from pgque.receive(%s, %s)", [queue, consumer])
    one.commit()

    assert waiting.result() == []


def test_a_late_commit_is_delivered_though_later_events_are_done(sql, session, queue, consumer):
    late = session()
    send(late, queue, "late")
    send(sql, queue, "early")
    tick(sql, queue)
    assert drain(sql, queue, consumer) == ["early"]

    late.commit()
    tick(sql, queue)

    assert drain(sql, queue, consumer) == ["late"]


def test_a_late_commit_is_delivered_though_no_event_follows(sql, session, queue, consumer):
    late = session()
    send(late, queue, "late")
    tick(sql, queue)
    assert drain(sql, queue, consumer) == []
    late.commit()

    sql.rows("update pgque.tick set tick_time = tick_time - interval '5 minutes'")
    assert sql.value("select pgque.ticker(%s)", [queue])

    assert drain(sql, queue, consumer) == ["late"]


def test_an_open_maintenance_transaction_blocks_nobody(sql, session, queue, consumer):
    sql.rows("set lock_timeout = '2s'")
    send(sql, queue, "a")
    tick(sql, queue)
    age_rotation(sql, queue)
    maintenance = session()
    maintenance.rows("select pgque.maint()")
    assert current_table(maintenance, queue) == 1

    messages = receive(sql, queue, consumer)
    nack(sql, messages[0][1], messages[0][0])
    ack(sql, messages[0][1])
    send(sql, queue, "b")
    sql.rows("select pgque.subscribe(%s, 'another')", [queue])
    tick(sql, queue)

    maintenance.commit()
    assert drain(sql, queue, consumer) == ["b"]


def test_a_dead_letter_replayed_twice_at_once_comes_once(sql, session, queue, consumer):
    sql.rows("select pgque.set_queue_config(%s, 'max_retries', '0')", [queue])
    send(sql, queue, "a")
    tick(sql, queue)
    messages = receive(sql, queue, consumer)
    nack(sql, messages[0][1], messages[0][0])
    ack(sql, messages[0][1])
    letter = sql.value("select dl_id from pgque.dlq_inspect(%s)", [queue])
    one, two = session(), session(autocommit=True)
    one.value("select pgque.dlq_replay(%s)", [letter])

    second = two.start_blocked("select pgque.dlq_replay(%s)", [letter])
    one.commit()

    assert "dead letter entry not found" in str(second.exception())
    tick(sql, queue)
    assert drain(sql, queue, consumer) == ["a"]

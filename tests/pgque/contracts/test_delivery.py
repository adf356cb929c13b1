"""The promises of the engine, one test each.

1. A batch that was not acknowledged is given again.
2. What a transaction sends cannot be received in it, and needs a tick after its commit.
3. What is rolled back is never delivered.
4. An acknowledgement counts once.
5. A nack and the acknowledgement of its batch bring the one message back, and nothing else.
6. A takeover makes the old batch id worthless.
7. Acknowledging finishes the whole batch: too small a limit is refused, not cut.
8. Events of one transaction come in one batch.
9. A crash between nack and ack delivers twice, never less than once.
"""

import psycopg
import pytest

from tests.support.engine import ack, drain, nack, payloads, receive, receive_coop, send, tick


def test_1_an_unacknowledged_batch_comes_again(sql, session, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    crashed = session()
    first = receive(crashed, queue, consumer)
    crashed.commit()
    crashed.connection.close()

    assert receive(sql, queue, consumer) == first


def test_2_sending_ticking_and_receiving_need_transactions_of_their_own(session, queue, consumer):
    one = session()
    send(one, queue, "a")
    tick(one, queue)
    assert receive(one, queue, consumer) == []
    one.commit()

    tick(one, queue)
    one.commit()

    assert payloads(receive(one, queue, consumer)) == ["a"]


def test_3_what_is_rolled_back_is_never_delivered(sql, session, queue, consumer):
    one = session()
    send(one, queue, "a")
    tick(sql, queue)
    one.rollback()
    tick(sql, queue)

    assert drain(sql, queue, consumer) == []


def test_4_an_acknowledgement_counts_once(sql, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    batch = receive(sql, queue, consumer)[0][1]

    assert [ack(sql, batch), ack(sql, batch), ack(sql, -1)] == [1, 0, 0]


def test_5_a_nacked_message_alone_comes_again(sql, queue, consumer):
    send(sql, queue, "a", "b", "c")
    tick(sql, queue)
    messages = receive(sql, queue, consumer)
    nack(sql, messages[1][1], messages[1][0])
    ack(sql, messages[1][1])
    sql.rows("select pgque.maint_retry_events()")
    tick(sql, queue)

    assert drain(sql, queue, consumer) == ["b"]


def test_6_a_takeover_makes_the_old_batch_id_worthless(sql, queue):
    receive_coop(sql, queue, "group", "a")
    receive_coop(sql, queue, "group", "b")
    send(sql, queue, "1")
    tick(sql, queue)
    old = receive_coop(sql, queue, "group", "a")[0][1]
    new = receive_coop(sql, queue, "group", "b", "0 seconds")[0][1]

    assert [ack(sql, old), ack(sql, new)] == [0, 1]


def test_7_a_batch_is_never_cut(sql, queue, consumer):
    send(sql, queue, *[str(number) for number in range(101)])
    tick(sql, queue)

    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        sql.rows("select * from pgque.receive(%s, %s)", [queue, consumer])

    assert len(drain(sql, queue, consumer)) == 101


def test_8_events_of_one_transaction_come_in_one_batch(sql, session, queue, consumer):
    one = session()
    send(one, queue, "a")
    tick(sql, queue)
    send(one, queue, "b")
    one.commit()
    tick(sql, queue)

    assert payloads(receive(sql, queue, consumer)) == ["a", "b"]


def test_9_a_crash_between_nack_and_ack_delivers_twice_never_less(sql, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    messages = receive(sql, queue, consumer)
    nack(sql, messages[0][1], messages[0][0])
    sql.rows("select pgque.maint_retry_events()")
    tick(sql, queue)

    assert drain(sql, queue, consumer) == ["a", "a"]

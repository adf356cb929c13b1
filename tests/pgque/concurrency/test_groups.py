"""Several sessions as members of a group: they do not wait for each other, and share no batch."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.support.engine import ack, join, nack, payloads, receive_coop, send, send_batches, tick
from tests.support.sessions import Session


def test_members_of_a_group_do_not_wait_for_each_others_commit(sql, session, queue):
    join(sql, queue, "group", "abc")
    send_batches(sql, queue, "123")
    members = {name: session() for name in "abc"}

    received = [payloads(receive_coop(members[name], queue, "group", name)) for name in "abc"]

    assert received == [["1"], ["2"], ["3"]]


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_windows_handed_out_ahead_are_not_handed_out_again(sql, session, queue, order):
    join(sql, queue, "group", "abcd")
    send_batches(sql, queue, "123")
    members = {name: session() for name in "abc"}
    for name in "abc":
        ack(members[name], receive_coop(members[name], queue, "group", name)[0][1])

    for name in order:
        members[name].commit()
        assert receive_coop(sql, queue, "group", "d") == []

    send(sql, queue, "4")
    tick(sql, queue)
    assert payloads(receive_coop(sql, queue, "group", "d")) == ["4"]
    cursor, newest, left = sql.rows(
        "select sub_last_tick, (select max(tick_id) from pgque.tick where tick_queue = sub_queue),"
        " (select count(*) from pgque.coop_window where cw_queue = sub_queue)"
        " from pgque.subscription join pgque.queue on sub_queue = queue_id"
        " where queue_name = %s and sub_role = 'coop_main'",
        [queue],
    )[0]
    assert (cursor, left) == (newest, 0)


def test_a_window_whose_member_rolls_back_is_handed_out_again(sql, session, queue):
    join(sql, queue, "group", "abc")
    send_batches(sql, queue, "12")
    one, two = session(), session()
    receive_coop(one, queue, "group", "a")
    ack(two, receive_coop(two, queue, "group", "b")[0][1])
    two.commit()

    one.rollback()

    assert payloads(receive_coop(sql, queue, "group", "c")) == ["1"]
    assert receive_coop(sql, queue, "group", "a") == []


def test_first_members_at_once_all_join(sql, url, queue):
    barrier = Barrier(8)

    def join(number):
        with Session(url, autocommit=True) as one:
            barrier.wait()
            return receive_coop(one, queue, "cold", f"m{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(join, range(8)))

    roles = sql.rows(
        "select sub_role, count(*) from pgque.subscription join pgque.queue on queue_id = sub_queue"
        " where queue_name = %s group by 1 order by 1",
        [queue],
    )
    assert roles == [("coop_main", 1), ("coop_member", 8)]


def test_a_nack_keeps_a_takeover_away_until_its_ack(sql, session, queue):
    join(sql, queue, "group", "ab")
    send(sql, queue, "1")
    tick(sql, queue)
    messages = receive_coop(sql, queue, "group", "a")
    sql.rows(
        "update pgque.subscription set sub_active = now() - interval '1 hour' where sub_batch = %s", [messages[0][1]]
    )
    one = session()
    nack(one, messages[0][1], messages[0][0])

    assert receive_coop(sql, queue, "group", "b", "1 minute") == []
    assert ack(one, messages[0][1]) == 1


def test_two_processes_under_one_member_name_get_the_same_batch(sql, session, queue):
    join(sql, queue, "group", "a")
    send_batches(sql, queue, "12")
    one, two = session(), session(autocommit=True)
    first = receive_coop(one, queue, "group", "a")

    second = two.start_blocked("select * from pgque.receive_coop(%s, 'group', 'a')", [queue])
    one.commit()

    assert second.result() == first


def test_a_group_does_not_end_while_somebody_joins(sql, session, queue):
    join(sql, queue, "group", "a")
    send(sql, queue, "1")
    tick(sql, queue)
    joining, leaving = session(), session(autocommit=True)
    join(joining, queue, "group", "b")

    left = leaving.start_blocked("select pgque.unsubscribe_subconsumer(%s, 'group', 'a')", [queue])
    joining.commit()

    assert left.result() == [(1,)]
    assert payloads(receive_coop(sql, queue, "group", "b")) == ["1"]


def test_a_member_that_waited_for_its_own_ack_gets_the_next_window(sql, session, queue):
    join(sql, queue, "group", "a")
    send_batches(sql, queue, "12")
    batch = receive_coop(sql, queue, "group", "a")[0][1]
    one, two = session(), session(autocommit=True)
    ack(one, batch)

    waiting = two.start_blocked("select * from pgque.receive_coop(%s, 'group', 'a')", [queue])
    one.commit()

    assert payloads(waiting.result()) == ["2"]


def test_a_process_that_leaves_and_one_that_receives_under_one_name_do_not_deadlock(sql, session, queue):
    join(sql, queue, "group", "a")
    send(sql, queue, "1")
    tick(sql, queue)
    leaving, receiving = session(), session()
    mine = "from pgque.subscription join pgque.queue on queue_id = sub_queue where queue_name = %s and sub_role = %s"
    leaving.rows(f"select {mine} for update of subscription", [queue, "coop_member"])

    waiting = receiving.start_blocked("select * from pgque.receive_coop(%s, 'group', 'a')", [queue])
    leaving.rows("set local lock_timeout = '5s'")
    leaving.rows(f"select pg_advisory_xact_lock(hashtext('pgque.group'), sub_id) {mine}", [queue, "coop_main"])
    leaving.rollback()

    assert payloads(waiting.result()) == ["1"]


def test_of_two_last_members_that_leave_at_once_the_second_ends_the_group(sql, session, queue):
    join(sql, queue, "group", "ab")
    first, second = session(), session()

    first.rows("select pgque.unsubscribe_subconsumer(%s, 'group', 'a')", [queue])
    waiting = second.start_blocked("select pgque.unsubscribe_subconsumer(%s, 'group', 'b')", [queue])
    first.commit()
    waiting.result()
    second.commit()

    roles = "select sub_role from pgque.subscription join pgque.queue on queue_id = sub_queue where queue_name = %s"
    assert sql.rows(roles, [queue]) == [("normal",)]

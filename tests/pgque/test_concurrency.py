"""Steps over several real sessions: who waits, who does not, and that nothing is lost or told twice."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psycopg
import pytest

from tests.support.engine import (
    ack,
    age_rotation,
    current_table,
    drain,
    payloads,
    receive,
    receive_coop,
    rotate,
    send,
    tick,
)
from tests.support.sessions import Session


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


def test_members_of_a_group_do_not_wait_for_each_others_commit(sql, session, queue):
    sql.rows("select pgque.subscribe_subconsumer(%s, 'group', m) from unnest('{a,b,c}'::text[]) m", [queue])
    for payload in "123":
        send(sql, queue, payload)
        tick(sql, queue)
    members = {name: session() for name in "abc"}

    received = [payloads(receive_coop(members[name], queue, "group", name)) for name in "abc"]

    assert received == [["1"], ["2"], ["3"]]


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_windows_handed_out_ahead_are_not_handed_out_again(sql, session, queue, order):
    sql.rows("select pgque.subscribe_subconsumer(%s, 'group', m) from unnest('{a,b,c,d}'::text[]) m", [queue])
    for payload in "123":
        send(sql, queue, payload)
        tick(sql, queue)
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
    sql.rows("select pgque.subscribe_subconsumer(%s, 'group', m) from unnest('{a,b,c}'::text[]) m", [queue])
    for payload in "12":
        send(sql, queue, payload)
        tick(sql, queue)
    one, two = session(), session()
    receive_coop(one, queue, "group", "a")
    ack(two, receive_coop(two, queue, "group", "b")[0][1])
    two.commit()

    one.rollback()

    assert payloads(receive_coop(sql, queue, "group", "c")) == ["1"]
    assert receive_coop(sql, queue, "group", "a") == []


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


def test_two_tickers_at_once_make_one_tick(sql, session, queue):
    send(sql, queue, "a")
    one, two = session(), session(autocommit=True)

    first = one.value("select pgque.ticker(%s)", [queue])
    second = two.value("select pgque.ticker(%s)", [queue])
    one.commit()

    assert (first, second) == (2, None)


def test_snapshots_of_ticks_never_go_back_under_concurrent_tickers(sql, url, queue, consumer):
    sql.rows("select pgque.set_queue_config(%s, 'ticker_max_count', '1')", [queue])

    def work(number):
        with Session(url, autocommit=True) as one:
            for step in range(30):
                send(one, queue, f"{number}-{step}")
                one.value("select pgque.ticker()")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    tick(sql, queue)

    seen = drain(sql, queue, consumer)
    backwards = sql.value(
        "select count(*) from (select tick_snapshot s, lag(tick_snapshot) over (order by tick_id) p"
        " from pgque.tick join pgque.queue on queue_id = tick_queue where queue_name = %s) t"
        " where pg_snapshot_xmin(s) < pg_snapshot_xmin(p) or pg_snapshot_xmax(s) < pg_snapshot_xmax(p)",
        [queue],
    )
    assert backwards == 0
    assert len(seen) == 120
    assert len(set(seen)) == 120


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
def test_a_ticker_with_one_snapshot_for_all_is_refused(session, queue, level):
    old = session()
    old.connection.isolation_level = level

    with pytest.raises(psycopg.errors.InvalidTransactionState, match="READ COMMITTED"):
        old.value("select pgque.ticker(%s)", [queue])


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


def test_events_sent_by_the_ticking_transaction_come_with_the_next_tick(sql, session, queue, consumer):
    busy = session()
    send(busy, queue, "a")
    sql.value("select pg_current_xact_id()::text")
    tick(busy, queue)

    assert receive(busy, queue, consumer) == []
    send(busy, queue, "b")
    busy.commit()
    tick(sql, queue)

    assert drain(sql, queue, consumer) == ["a", "b"]


def test_first_subscriptions_at_once_all_succeed(sql, url, queue):
    barrier = Barrier(8)

    def subscribe(_):
        with Session(url, autocommit=True) as one:
            barrier.wait()
            return one.value("select pgque.subscribe(%s, 'newcomer')", [queue])

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(subscribe, range(8))) == 1


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


def test_a_consumer_name_used_on_many_queues_does_not_serialise_them(sql, session, queue):
    sql.rows("select pgque.create_queue('other ' || %s)", [queue])
    sql.rows("select pgque.subscribe('other ' || %s, 'shared')", [queue])
    one = session()
    one.rows("select pgque.subscribe(%s, 'shared')", [queue])

    assert sql.value("select pgque.subscribe('other ' || %s, 'shared')", [queue]) == 0
    one.rollback()
    sql.rows("select pgque.drop_queue('other ' || %s, true)", [queue])


def test_the_second_creator_of_a_queue_waits_and_gets_0(sql, session, queue):
    one, two = session(), session(autocommit=True)
    name = f"{queue} twice"
    assert one.value("select pgque.create_queue(%s)", [name]) == 1

    second = two.start_blocked("select pgque.create_queue(%s)", [name])
    one.commit()

    assert second.result() == [(0,)]
    sql.rows("select pgque.drop_queue(%s)", [name])


def test_a_queue_dropped_while_somebody_subscribes_is_not_dropped(sql, session, queue):
    one, two = session(), session(autocommit=True)
    one.rows("select pgque.subscribe(%s, 'late')", [queue])

    drop = two.start_blocked("select pgque.drop_queue(%s)", [queue])
    one.commit()

    assert "consumers still attached" in str(drop.exception())


def test_an_open_maintenance_transaction_blocks_nobody(sql, session, queue, consumer):
    sql.rows("set lock_timeout = '2s'")
    send(sql, queue, "a")
    tick(sql, queue)
    age_rotation(sql, queue)
    maintenance = session()
    maintenance.rows("select pgque.maint()")
    assert current_table(maintenance, queue) == 1

    messages = receive(sql, queue, consumer)
    sql.rows(
        "select pgque.nack(%s, row(%s,null,null,null,null,null,null,null,null,null)::pgque.message)",
        [
            messages[0][1],
            messages[0][0],
        ],
    )
    ack(sql, messages[0][1])
    send(sql, queue, "b")
    sql.rows("select pgque.subscribe(%s, 'another')", [queue])
    tick(sql, queue)

    maintenance.commit()
    assert drain(sql, queue, consumer) == ["b"]


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


def test_a_dead_letter_replayed_twice_at_once_comes_once(sql, session, queue, consumer):
    sql.rows("select pgque.set_queue_config(%s, 'max_retries', '0')", [queue])
    send(sql, queue, "a")
    tick(sql, queue)
    messages = receive(sql, queue, consumer)
    sql.rows(
        "select pgque.nack(%s, row(%s,null,null,null,null,null,null,null,null,null)::pgque.message)",
        [
            messages[0][1],
            messages[0][0],
        ],
    )
    ack(sql, messages[0][1])
    letter = sql.value("select dl_id from pgque.dlq_inspect(%s)", [queue])
    one, two = session(), session(autocommit=True)
    one.value("select pgque.dlq_replay(%s)", [letter])

    second = two.start_blocked("select pgque.dlq_replay(%s)", [letter])
    one.commit()

    assert "dead letter entry not found" in str(second.exception())
    tick(sql, queue)
    assert drain(sql, queue, consumer) == ["a"]


def test_a_nack_keeps_a_takeover_away_until_its_ack(sql, session, queue):
    sql.rows("select pgque.subscribe_subconsumer(%s, 'group', m) from unnest('{a,b}'::text[]) m", [queue])
    send(sql, queue, "1")
    tick(sql, queue)
    messages = receive_coop(sql, queue, "group", "a")
    sql.rows(
        "update pgque.subscription set sub_active = now() - interval '1 hour' where sub_batch = %s", [messages[0][1]]
    )
    one = session()
    one.rows(
        "select pgque.nack(%s, row(%s,null,null,null,null,null,null,null,null,null)::pgque.message)",
        [
            messages[0][1],
            messages[0][0],
        ],
    )

    assert receive_coop(sql, queue, "group", "b", "1 minute") == []
    assert ack(one, messages[0][1]) == 1


def test_two_processes_under_one_member_name_get_the_same_batch(sql, session, queue):
    sql.rows("select pgque.subscribe_subconsumer(%s, 'group', 'a')", [queue])
    for payload in "12":
        send(sql, queue, payload)
        tick(sql, queue)
    one, two = session(), session(autocommit=True)
    first = receive_coop(one, queue, "group", "a")

    second = two.start_blocked("select * from pgque.receive_coop(%s, 'group', 'a')", [queue])
    one.commit()

    assert second.result() == first


def test_a_group_does_not_end_while_somebody_joins(sql, session, queue):
    sql.rows("select pgque.subscribe_subconsumer(%s, 'group', 'a')", [queue])
    send(sql, queue, "1")
    tick(sql, queue)
    joining, leaving = session(), session(autocommit=True)
    joining.rows("select pgque.subscribe_subconsumer(%s, 'group', 'b')", [queue])

    left = leaving.start_blocked("select pgque.unsubscribe_subconsumer(%s, 'group', 'a')", [queue])
    joining.commit()

    assert left.result() == [(1,)]
    assert payloads(receive_coop(sql, queue, "group", "b")) == ["1"]


def test_a_member_that_waited_for_its_own_ack_gets_the_next_window(sql, session, queue):
    sql.rows("select pgque.subscribe_subconsumer(%s, 'group', 'a')", [queue])
    for payload in "12":
        send(sql, queue, payload)
        tick(sql, queue)
    batch = receive_coop(sql, queue, "group", "a")[0][1]
    one, two = session(), session(autocommit=True)
    ack(one, batch)

    waiting = two.start_blocked("select * from pgque.receive_coop(%s, 'group', 'a')", [queue])
    one.commit()

    assert payloads(waiting.result()) == ["2"]


def test_a_process_that_leaves_and_one_that_receives_under_one_name_do_not_deadlock(sql, session, queue):
    sql.rows("select pgque.subscribe_subconsumer(%s, 'group', 'a')", [queue])
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
    for member in "ab":
        sql.rows("select pgque.subscribe_subconsumer(%s, 'group', %s)", [queue, member])
    first, second = session(), session()

    first.rows("select pgque.unsubscribe_subconsumer(%s, 'group', 'a')", [queue])
    waiting = second.start_blocked("select pgque.unsubscribe_subconsumer(%s, 'group', 'b')", [queue])
    first.commit()
    waiting.result()
    second.commit()

    roles = "select sub_role from pgque.subscription join pgque.queue on queue_id = sub_queue where queue_name = %s"
    assert sql.rows(roles, [queue]) == [("normal",)]

"""Cooperative consumers: one cursor, many members."""

import psycopg
import pytest

from tests.support.engine import ack, drain, nack, payloads, receive, receive_coop, send, send_batches, tick


def rows(sql, queue):
    return sql.rows(
        "select co_name, sub_role, sub_last_tick, sub_batch is not null, sub_id from pgque.subscription"
        " join pgque.queue on queue_id = sub_queue join pgque.consumer on co_id = sub_consumer"
        " where queue_name = %s order by 1",
        [queue],
    )


def subscribe(sql, queue, member, convert=False):
    return sql.value("select pgque.subscribe_subconsumer(%s, 'group', %s, %s)", [queue, member, convert])


def fall_silent(sql, batch):
    sql.rows("update pgque.subscription set sub_active = now() - interval '1 hour' where sub_batch = %s", [batch])


@pytest.fixture
def group(sql, queue):
    """A group with the members a and b, and one window each waiting: 1 and 2."""
    for member in "ab":
        subscribe(sql, queue, member)
    send_batches(sql, queue, "12")


def test_joining_makes_the_group_and_is_done_once(sql, queue):
    assert [subscribe(sql, queue, "a"), subscribe(sql, queue, "a"), subscribe(sql, queue, "b")] == [1, 0, 1]

    names = [row[:4] for row in rows(sql, queue)]
    assert names == [
        ("group", "coop_main", 1, False),
        ("group.a", "coop_member", None, False),
        ("group.b", "coop_member", None, False),
    ]
    assert len({row[4] for row in rows(sql, queue)}) == 1


def test_a_normal_consumer_becomes_a_group_only_when_asked_and_keeps_its_cursor(sql, queue):
    sql.rows("select pgque.subscribe(%s, 'group')", [queue])
    send(sql, queue, "1")
    tick(sql, queue)

    with pytest.raises(psycopg.errors.RaiseException, match="is already a normal consumer; explicit conversion is"):
        subscribe(sql, queue, "a")

    assert subscribe(sql, queue, "a", convert=True) == 1
    assert payloads(receive_coop(sql, queue, "group", "a")) == ["1"]


def test_a_normal_consumer_at_work_is_not_converted(sql, queue):
    sql.rows("select pgque.subscribe(%s, 'group')", [queue])
    send(sql, queue, "1")
    tick(sql, queue)
    receive(sql, queue, "group")

    with pytest.raises(psycopg.errors.RaiseException, match="cannot convert active normal consumer group on queue"):
        subscribe(sql, queue, "a", convert=True)


def test_each_window_goes_to_one_member(sql, queue, group):
    first = receive_coop(sql, queue, "group", "a")
    second = receive_coop(sql, queue, "group", "b")

    assert (payloads(first), payloads(second)) == (["1"], ["2"])
    assert receive_coop(sql, queue, "group", "a") == first
    assert receive_coop(sql, queue, "group", "newcomer") == []


def test_windows_may_be_finished_in_any_order(sql, queue, group):
    batches = [receive_coop(sql, queue, "group", member)[0][1] for member in "ab"]

    assert [ack(sql, batch) for batch in reversed(batches)] == [1, 1]
    assert [receive_coop(sql, queue, "group", member) for member in "ab"] == [[], []]
    assert [row[:4] for row in rows(sql, queue)] == [
        ("group", "coop_main", 3, False),
        ("group.a", "coop_member", None, False),
        ("group.b", "coop_member", None, False),
    ]


def test_a_member_is_known_after_its_first_receive(sql, queue):
    assert receive_coop(sql, queue, "group", "a") == []

    assert [row[1] for row in rows(sql, queue)] == ["coop_main", "coop_member"]


def test_an_idle_poll_uses_no_transaction_id(sql, queue):
    subscribe(sql, queue, "a")
    sql.rows("begin")

    receive_coop(sql, queue, "group", "a", "1 minute")

    assert sql.value("select pg_current_xact_id_if_assigned()::text") is None
    sql.rows("rollback")


def test_an_idle_member_gives_a_sign_of_life_now_and_then(sql, queue):
    subscribe(sql, queue, "a")
    sql.rows("update pgque.subscription set sub_active = now() - interval '1 minute'")

    receive_coop(sql, queue, "group", "a")

    seen = sql.value("select last_seen < '10 seconds' from pgque.get_consumer_info(%s, 'group.a')", [queue])
    assert seen


def test_a_silent_members_batch_is_taken_over_under_a_new_id(sql, queue, group):
    [message] = receive_coop(sql, queue, "group", "a")
    fall_silent(sql, message[1])

    [taken] = receive_coop(sql, queue, "group", "b", "1 minute")

    assert (taken[0], taken[3]) == (message[0], "1")
    assert taken[1] != message[1]
    assert ack(sql, message[1]) == 0
    with pytest.raises(psycopg.errors.RaiseException, match="batch not found"):
        nack(sql, message[1], message[0])
    assert ack(sql, taken[1]) == 1


@pytest.mark.parametrize("dead_interval", [None, "2 hours"])
def test_a_member_is_left_in_peace_until_it_counts_as_dead(sql, queue, group, dead_interval):
    [message] = receive_coop(sql, queue, "group", "a")
    fall_silent(sql, message[1])

    assert payloads(receive_coop(sql, queue, "group", "b", dead_interval)) == ["2"]
    assert ack(sql, message[1]) == 1


def test_a_touch_keeps_the_batch(sql, queue, group):
    [message] = receive_coop(sql, queue, "group", "a")
    fall_silent(sql, message[1])

    assert sql.value("select pgque.touch_subconsumer(%s, 'group', 'a')", [queue]) == 1

    assert payloads(receive_coop(sql, queue, "group", "b", "1 minute")) == ["2"]
    assert sql.value("select pgque.touch_subconsumer(%s, 'group', 'nobody')", [queue]) == 0


def test_age_is_counted_by_the_clock_not_by_the_transaction(sql, session, queue, group):
    one = session()
    one.value("select now()")
    [message] = receive_coop(sql, queue, "group", "a")

    assert payloads(receive_coop(one, queue, "group", "b", "0 seconds")) == ["1"]
    one.rollback()
    assert ack(sql, message[1]) == 1


def test_the_one_silent_for_longest_is_taken_first(sql, queue, group):
    batches = [receive_coop(sql, queue, "group", member)[0][1] for member in "ab"]
    fall_silent(sql, batches[0])
    sql.rows("update pgque.subscription set sub_active = now() - interval '2 hours' where sub_batch = %s", [batches[1]])

    assert payloads(receive_coop(sql, queue, "group", "c", "1 minute")) == ["2"]


def test_an_overflow_changes_nothing_not_even_a_takeover(sql, queue):
    for member in "ab":
        subscribe(sql, queue, member)
    send(sql, queue, "1", "2")
    tick(sql, queue)
    batch = receive_coop(sql, queue, "group", "a")[0][1]
    fall_silent(sql, batch)
    before = sql.rows("select * from pgque.subscription order by sub_queue, sub_consumer")

    with pytest.raises(psycopg.errors.ProgramLimitExceeded) as refusal:
        sql.rows("select * from pgque.receive_coop(%s, 'group', 'b', 1, '1 minute')", [queue])

    assert refusal.value.diag.message_primary == "pgque.receive_coop: batch exceeds max_return of 1"
    assert sql.rows("select * from pgque.subscription order by sub_queue, sub_consumer") == before


def test_retries_of_a_member_come_back_to_the_group(sql, queue, group):
    [message] = receive_coop(sql, queue, "group", "a")
    nack(sql, message[1], message[0])
    ack(sql, message[1])
    ack(sql, receive_coop(sql, queue, "group", "a")[0][1])
    sql.rows("select pgque.maint_retry_events()")
    tick(sql, queue)

    assert payloads(receive_coop(sql, queue, "group", "b")) == ["1"]


def test_leaving_with_an_open_batch_needs_a_word_on_it(sql, queue, group):
    receive_coop(sql, queue, "group", "a")

    with pytest.raises(psycopg.errors.RaiseException) as refusal:
        sql.rows("select pgque.unsubscribe_subconsumer(%s, 'group', 'a')", [queue])

    assert refusal.value.diag.message_primary == (
        f"cannot unregister active cooperative subconsumer {queue}/group/a without batch_handling = 1"
    )


def test_what_a_leaving_member_held_is_retried_or_buried(sql, queue, group):
    [message] = receive_coop(sql, queue, "group", "a")
    sql.rows("select pgque.set_queue_config(%s, 'max_retries', '0')", [queue])
    other = receive_coop(sql, queue, "group", "b")
    sql.rows("select pgque.set_queue_config(%s, 'max_retries', null)", [queue])

    assert sql.value("select pgque.unregister_subconsumer(%s, 'group', 'a', 1)", [queue]) == 1
    sql.rows("select pgque.set_queue_config(%s, 'max_retries', '0')", [queue])
    assert sql.value("select pgque.unsubscribe_subconsumer(%s, 'group', 'b', 1)", [queue]) == 1

    waiting = sql.rows(
        "select r.ev_id, ev_retry_after > now() + interval '50 seconds' from pgque.retry_queue r"
        " join pgque.queue on queue_id = ev_queue where queue_name = %s",
        [queue],
    )
    assert waiting == [(message[0], True)]
    letters = sql.rows("select ev_id, dl_reason from pgque.dlq_inspect(%s)", [queue])
    assert letters == [(other[0][0], "subconsumer unregistered")]


def test_the_last_to_leave_turns_the_group_into_a_normal_consumer(sql, queue, group):
    ack(sql, receive_coop(sql, queue, "group", "a")[0][1])
    for member in "ab":
        sql.rows("select pgque.unsubscribe_subconsumer(%s, 'group', %s)", [queue, member])

    assert [row[:2] for row in rows(sql, queue)] == [("group", "normal")]
    assert drain(sql, queue, "group") == ["2"]
    assert sql.value("select pgque.unsubscribe_subconsumer(%s, 'group', 'a')", [queue]) == 0


def test_main_and_members_are_no_normal_consumers(sql, queue, group):
    with pytest.raises(psycopg.errors.RaiseException, match="is a cooperative main consumer; use cooperative receive"):
        receive(sql, queue, "group")
    with pytest.raises(psycopg.errors.RaiseException, match="is a cooperative subconsumer; use receive_coop"):
        receive(sql, queue, "group.a")


def test_a_group_with_members_is_not_unsubscribed(sql, queue, group):
    with pytest.raises(psycopg.errors.RaiseException, match="cooperative main consumer with registered subconsumers"):
        sql.rows("select pgque.unsubscribe(%s, 'group')", [queue])
    receive_coop(sql, queue, "group", "a")
    with pytest.raises(psycopg.errors.RaiseException, match="consumer with active subconsumer batches"):
        sql.rows("select pgque.unsubscribe(%s, 'group')", [queue])
    with pytest.raises(psycopg.errors.RaiseException, match="active cooperative subconsumer without forced batch"):
        sql.rows("select pgque.unsubscribe(%s, 'group.a')", [queue])


def test_a_batch_of_a_wanted_size_passes_over_smaller_ones(sql, queue, group):
    call = "select prev_tick_id, next_tick_id from pgque.next_batch_custom(%s, 'group', 'a', null, %s, null)"

    assert sql.rows(call, [queue, 1000000]) == [(None, None)]
    assert sql.rows(call, [queue, 3000]) == [(1, 3)]


def test_next_batch_of_a_member_stores_the_batch_it_returns(sql, queue, group):
    batch = sql.value("select pgque.next_batch(%s, 'group', 'a')", [queue])

    assert [row[5] for row in sql.rows("select * from pgque.get_batch_events(%s)", [batch])] == ["1"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            "sub_role = 'normal' where sub_role = 'coop_member'",
            "group.a on queue {queue} is already registered incompat",
        ),
        (
            "sub_batch = -5 where sub_role = 'coop_main'",
            "main consumer {queue}/group has an unexpected active batch -5",
        ),
        ("sub_last_tick = null where sub_role = 'coop_main'", "main consumer group on queue {queue} has no cursor"),
        ("sub_last_tick = -9 where sub_role = 'coop_main'", "consumer group on queue {queue} does not see tick -9"),
        ("sub_role = 'coop_member' where sub_role = 'coop_main'", "group on queue {queue} is not a cooperative main"),
    ],
)
def test_rows_that_do_not_fit_together_are_named(sql, queue, group, damage, message):
    sql.rows(
        f"update pgque.subscription set {damage} and sub_queue ="
        " (select queue_id from pgque.queue where queue_name = %s)",
        [queue],
    )

    with pytest.raises(psycopg.errors.RaiseException) as refusal:
        receive_coop(sql, queue, "group", "a")

    assert message.format(queue=queue) in refusal.value.diag.message_primary


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("receive_coop('', 'g', 'm')", "queue name must not be empty"),
        ("receive_coop('{queue}', null, 'm')", "consumer name must not be empty"),
        ("register_subconsumer('{queue}', 'g', '')", "subconsumer name must not be empty"),
        ("register_subconsumer('{queue}', 'g.h', 'm')", "cooperative consumer name must not contain dot: g.h"),
        ("next_batch('{queue}', 'g', 'm.n')", "cooperative subconsumer name must not contain dot: m.n"),
        ("register_subconsumer('nowhere', 'g', 'm')", "Event queue not created yet"),
        ("receive_coop('{queue}', 'g', 'm', 0)", "pgque.receive_coop: max_return must be >= 1, got 0"),
        ("unregister_subconsumer('{queue}', 'g', 'm', 2)", "unsupported batch_handling value: 2"),
    ],
)
def test_a_wrong_call_is_refused_with_the_words_of_the_contract(sql, queue, call, message):
    with pytest.raises(psycopg.errors.RaiseException) as refusal:
        sql.rows(f"select pgque.{call.format(queue=queue)}")

    assert refusal.value.diag.message_primary == message

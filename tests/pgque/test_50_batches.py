"""Which events a batch holds, and how it is read."""

import psycopg
import pytest

from tests.support.engine import ack, drain, nack, payloads, receive, rotate, send, send_batches, tick


def next_batch(sql, queue):
    return sql.value("select pgque.next_batch(%s, 'reader')", [queue])


def events(sql, batch):
    return [row[5] for row in sql.rows("select * from pgque.get_batch_events(%s)", [batch])]


def test_there_is_no_batch_without_a_newer_tick(sql, queue, consumer):
    send(sql, queue, "a")

    assert next_batch(sql, queue) is None


def test_a_poll_that_finds_nothing_uses_no_transaction_id(sql, queue, consumer):
    sql.rows("begin")

    sql.rows("select pgque.next_batch(%s, 'reader')", [queue])
    sql.rows("select * from pgque.receive(%s, 'reader')", [queue])

    assert sql.value("select pg_current_xact_id_if_assigned()::text") is None
    sql.rows("rollback")


def test_a_batch_holds_the_events_between_two_ticks_in_the_order_of_ids(sql, queue, consumer):
    send(sql, queue, "a", "b")
    tick(sql, queue)
    send(sql, queue, "c")
    tick(sql, queue)

    assert events(sql, next_batch(sql, queue)) == ["a", "b"]


def test_the_open_batch_is_given_again_until_it_is_finished(sql, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    batch = next_batch(sql, queue)

    assert next_batch(sql, queue) == batch
    assert sql.value("select pgque.finish_batch(%s)", [batch]) == 1
    assert next_batch(sql, queue) is None


def test_the_fields_of_an_event_are_those_of_the_contract(sql, queue, consumer):
    xid = sql.value(
        "with sent as (select pgque.insert_event(%s, 'k', 'd', '1', '2', '3', '4'))"
        " select pg_current_xact_id()::text::bigint from sent",
        [queue],
    )
    tick(sql, queue)

    [(ev_id, ev_time, *rest)] = sql.rows("select * from pgque.get_batch_events(%s)", [next_batch(sql, queue)])

    assert ev_id == 1
    assert ev_time.tzinfo is not None
    assert rest == [xid, None, "k", "d", "1", "2", "3", "4"]


def test_many_empty_ticks_are_passed_over_in_one_batch(sql, queue, consumer):
    for _ in range(200):
        sql.rows(
            "insert into pgque.tick (tick_queue, tick_id, tick_event_seq)"
            " select queue_id, nextval(queue_tick_seq::regclass), 0 from pgque.queue where queue_name = %s",
            [queue],
        )
    send(sql, queue, "a")
    tick(sql, queue)

    assert payloads(receive(sql, queue, consumer)) == ["a"]


def test_windows_that_only_look_full_are_passed_over_in_one_receive(sql, session, queue, consumer):
    for _ in range(20):
        tick(sql, queue)
    send(sql, queue, "a")
    tick(sql, queue)

    assert payloads(receive(sql, queue, consumer)) == ["a"]


def test_a_batch_over_several_tables_is_whole(sql, queue, consumer):
    send(sql, queue, "a")
    rotate(sql, queue)
    send(sql, queue, "b")
    rotate(sql, queue)
    send(sql, queue, "c")
    tick(sql, queue)

    assert events(sql, next_batch(sql, queue)) == ["a", "b", "c"]


def reads(session, queue):
    """Index entries of the event tables that the session read since its last flush, and scans without an index."""
    [row] = session.rows(
        "select sum((select sum(pg_stat_get_xact_tuples_returned(indexrelid)) from pg_index where indrelid = c.oid)),"
        " sum(pg_stat_get_xact_numscans(c.oid))"
        " from pgque.queue, generate_series(0, 2) n, lateral to_regclass(queue_data_pfx || '_' || n) c (oid)"
        " where queue_name = %s",
        [queue],
    )
    return row


def test_a_long_transaction_does_not_make_batches_read_old_events_again(sql, session, queue, consumer):
    elsewhere, reader = session(), session()
    elsewhere.value("select pg_current_xact_id()::text")
    sql.rows("select pgque.send_batch(%s, 't', array_agg(n::text)) from generate_series(1, 5000) n", [queue])
    tick(sql, queue)
    assert len(drain(sql, queue, consumer)) == 5000
    send(sql, queue, "new")
    tick(sql, queue)

    assert payloads(receive(reader, queue, consumer)) == ["new"]

    assert reads(reader, queue) == (1, 0)


def test_a_small_window_of_a_big_table_is_read_by_the_index_though_the_plan_is_older(sql, session, queue, consumer):
    reader = session()
    sql.rows(f"analyze {sql.value('select pgque.current_event_table(%s)', [queue])}")
    for count in (1, 20_000, 1):
        sql.rows("select pgque.send_batch(%s, 't', array_agg(n::text)) from generate_series(1, %s) n", [queue, count])
        tick(sql, queue)
        before = reads(reader, queue)
        messages = receive(reader, queue, consumer)
        assert len(messages) == count
        after = reads(reader, queue)
        ack(reader, messages[0][1])
        reader.commit()

    assert (after[0] - before[0], after[1] - before[1]) == (1, 0)


def test_two_hundred_thousand_events_are_read_in_pages(sql, queue, consumer):
    sql.rows("select pgque.send_batch(%s, 't', array_agg(n::text)) from generate_series(1, 200000) n", [queue])
    tick(sql, queue)
    batch = next_batch(sql, queue)
    sql.rows(f"declare page cursor with hold for select ev_id from pgque.get_batch_events({batch})")

    count = 0
    while rows := sql.rows("fetch 1000 from page"):
        count += len(rows)

    sql.rows("close page")
    assert count == 200_000


def test_a_cursor_over_a_batch_gives_its_first_rows_and_stays_open(sql, session, queue, consumer):
    send(sql, queue, "a", "b", "c")
    tick(sql, queue)
    batch = next_batch(sql, queue)
    reader = session()

    first = reader.rows("select ev_data from pgque.get_batch_cursor(%s, 'mine', 2)", [batch])
    rest = reader.rows("select ev_data from pgque.get_batch_cursor(%s, 'other', 5, 'ev_id > 1')", [batch])

    assert (first, rest) == ([("a",), ("b",)], [("b",), ("c",)])
    assert [row[5] for row in reader.rows("fetch all from mine")] == ["c"]


@pytest.mark.parametrize(
    ("lag", "count", "interval", "expected"),
    [
        (None, None, None, 2),
        ("1 hour", None, None, None),
        (None, 1000000, None, None),
        (None, 3000, None, 3),
        (None, 3500, None, 4),
        (None, 1500, None, 2),
        (None, None, "1 hour", None),
        (None, 1000000, "0 seconds", 2),
    ],
)
def test_a_batch_may_be_wanted_by_age_or_size(sql, queue, consumer, lag, count, interval, expected):
    send_batches(sql, queue, "abc")

    found = sql.rows(
        "select cur_tick_id, prev_tick_id from pgque.next_batch_custom(%s, 'reader', %s, %s, %s)",
        [queue, lag, count, interval],
    )

    assert found == [(expected, expected and 1)]


def test_next_batch_info_describes_the_batch(sql, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)

    [row] = sql.rows("select * from pgque.next_batch_info(%s, 'reader')", [queue])

    batch, tick_id, previous, time, previous_time, seq, previous_seq = row
    assert (batch, tick_id, previous) == (next_batch(sql, queue), 2, 1)
    assert time > previous_time
    assert (seq, previous_seq) == (2001, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("next_batch('{queue}', 'nobody')", "Not subscriber to queue: {queue}/nobody"),
        ("receive('nowhere', 'reader')", "Not subscriber to queue: nowhere/reader"),
        ("receive(null, null)", "Not subscriber to queue: <NULL>/<NULL>"),
        ("get_batch_events(-1)", "batch not found: -1"),
        ("receive('{queue}', 'reader', 0)", "pgque.receive: max_return must be >= 1, got 0"),
        ("receive('{queue}', 'reader', -5)", "pgque.receive: max_return must be >= 1, got -5"),
    ],
)
def test_a_wrong_call_is_refused_with_the_words_of_the_contract(sql, queue, consumer, call, message):
    with pytest.raises(psycopg.errors.RaiseException) as refusal:
        sql.rows(f"select pgque.{call.format(queue=queue)}")

    assert refusal.value.diag.message_primary == message.format(queue=queue)


def test_a_lost_tick_is_named(sql, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    sql.rows(
        "update pgque.subscription set sub_last_tick = -7 where sub_queue ="
        " (select queue_id from pgque.queue where queue_name = %s)",
        [queue],
    )

    with pytest.raises(psycopg.errors.RaiseException) as refusal:
        next_batch(sql, queue)

    assert refusal.value.diag.message_primary == (
        f"PgQ corruption: Consumer reader on queue {queue} does not see tick -7"
    )


@pytest.mark.parametrize("limit", [54, 1])
def test_a_batch_above_the_limit_is_refused_and_nothing_changes(sql, queue, consumer, limit):
    send(sql, queue, *[str(number) for number in range(55)])
    tick(sql, queue)
    state = (
        "select sub_last_tick, sub_batch, sub_active from pgque.subscription join pgque.queue"
        " on queue_id = sub_queue where queue_name = %s"
    )
    before = sql.rows(state, [queue])

    with pytest.raises(psycopg.errors.ProgramLimitExceeded) as refusal:
        receive(sql, queue, consumer, limit)

    assert refusal.value.diag.message_primary == f"pgque.receive: batch exceeds max_return of {limit}"
    assert refusal.value.diag.message_hint == (
        "Retry with a larger resource-safe max_return to receive the complete batch. Do not acknowledge after this"
        " error."
    )
    assert sql.rows(state, [queue]) == before
    assert len(receive(sql, queue, consumer, 55)) == 55


def test_an_open_batch_stays_open_when_the_limit_refuses_it(sql, queue, consumer):
    send(sql, queue, "a", "b")
    tick(sql, queue)
    batch = next_batch(sql, queue)

    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        receive(sql, queue, consumer, 1)

    assert next_batch(sql, queue) == batch


def test_a_stale_ack_finishes_nothing_and_warns(sql, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    batch = next_batch(sql, queue)
    notices = []
    sql.connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))

    assert [ack(sql, batch), ack(sql, batch)] == [1, 0]
    assert notices == [f"finish_batch: batch {batch} not found"]


def test_a_retried_event_comes_to_its_consumer_alone(sql, queue, consumer):
    sql.rows("select pgque.subscribe(%s, 'neighbour')", [queue])
    send(sql, queue, "a")
    tick(sql, queue)
    messages = receive(sql, queue, consumer)
    nack(sql, messages[0][1], messages[0][0])
    ack(sql, messages[0][1])
    sql.rows("select pgque.maint_retry_events()")
    tick(sql, queue)

    assert drain(sql, queue, "neighbour") == ["a"]
    assert drain(sql, queue, consumer) == ["a"]

"""When a tick is made, by whom, and what it costs when there is nothing to do."""

import psycopg
import pytest

from tests.support.engine import send, tick


def age_ticks(sql, queue, seconds):
    sql.rows(
        "update pgque.tick set tick_time = tick_time - %s * interval '1 second'"
        " where tick_queue = (select queue_id from pgque.queue where queue_name = %s)",
        [seconds, queue],
    )


def ticker(sql, queue):
    return sql.value("select pgque.ticker(%s)", [queue])


def settle(sql, queue, age=0, gap=1):
    """Two ticks, the newer one `age` seconds old, the older one `gap` seconds older."""
    ticker(sql, queue)
    sql.rows(
        "update pgque.tick set tick_time = now() - (%s + case tick_id when 1 then %s else 0 end) * interval '1 second'"
        " where tick_queue = (select queue_id from pgque.queue where queue_name = %s)",
        [age, gap, queue],
    )


def test_the_first_event_of_a_queue_is_ticked_at_once(sql, queue):
    send(sql, queue, "a")

    assert ticker(sql, queue) == 2


def test_the_first_event_of_a_queue_counts_as_new(sql, queue):
    settle(sql, queue)

    send(sql, queue, "a")

    assert sql.value("select ev_new from pgque.get_queue_info(%s)", [queue]) == 1


@pytest.mark.parametrize(
    ("events", "age", "gap", "due"),
    [
        (0, 0, 1, False),
        (0, 1.0, 0.1, False),
        (0, 1.6, 0.1, True),
        (0, 1.6, 5, False),
        (0, 2.1, 1, True),
        (0, 30, 20, False),
        (0, 61, 50, True),
        (1, 0, 1, False),
        (1, 2.0, 1, False),
        (1, 3.1, 1, True),
        (9, 0, 1, False),
        (10, 0, 1, True),
        (11, 0, 1, True),
    ],
)
def test_a_tick_is_due_by_count_by_age_or_when_idle_for_long(sql, queue, events, age, gap, due):
    sql.rows("select pgque.set_queue_config(%s, 'ticker_max_count', '10')", [queue])
    settle(sql, queue, age, gap)
    send(sql, queue, *["a"] * events)

    assert (ticker(sql, queue) is not None) is due


def test_an_event_that_was_being_sent_during_a_tick_waits_for_no_idle_period(sql, queue, session):
    producer = session()
    send(producer, queue, "late")
    settle(sql, queue, age=3.1, gap=50)
    assert ticker(sql, queue) is None
    producer.connection.commit()

    assert ticker(sql, queue) == 3
    age_ticks(sql, queue, 3.1)
    assert ticker(sql, queue) is None


def test_a_lag_of_milliseconds_is_obeyed(sql, queue):
    sql.rows("select pgque.set_queue_config(%s, 'ticker_max_lag', '10 milliseconds')", [queue])
    settle(sql, queue, age=0.011)
    send(sql, queue, "a")

    assert ticker(sql, queue) is not None


def test_a_forced_tick_is_made_by_the_next_ticker(sql, queue):
    settle(sql, queue)

    newest = sql.value("select pgque.force_next_tick(%s)", [queue])

    assert newest == 2
    assert ticker(sql, queue) == 3


def test_ticker_of_all_queues_counts_the_ticks(sql, queue):
    sql.value("select pgque.ticker()")
    sql.value("select pgque.ticker()")
    assert sql.value("select pgque.ticker()") == 0

    sql.rows("select pgque.force_tick(%s)", [queue])

    assert sql.value("select pgque.ticker()") == 1


def test_an_idle_pass_uses_no_transaction_id_and_writes_nothing(sql, queue):
    settle(sql, queue)
    sql.value("select pgque.ticker()")
    sql.rows("begin")

    sql.rows("select pgque.ticker()")

    assert sql.value("select pg_current_xact_id_if_assigned()::text") is None
    sql.rows("rollback")


def test_paused_and_external_queues_are_left_alone(sql, queue):
    sql.rows("select pgque.set_queue_config(%s, 'ticker_paused', 'true')", [queue])
    age_ticks(sql, queue, 600)

    sql.value("select pgque.ticker()")

    assert sql.value("select last_tick_id from pgque.get_queue_info(%s)", [queue]) == 1


def test_each_tick_is_notified_with_its_id(sql, queue):
    sql.rows(f'listen "pgque_{queue}"')

    tick_id = tick(sql, queue)

    notices = list(sql.connection.notifies(timeout=5, stop_after=1))
    assert [(notice.channel, notice.payload) for notice in notices] == [(f"pgque_{queue}", str(tick_id))]


@pytest.mark.parametrize(
    "sabotage",
    [
        "update pgque.tick set tick_snapshot = '9000000000000:9000000000000:' where tick_queue = %s",
        "update pgque.queue set queue_tick_seq = 'pgque.nowhere' where queue_id = %s",
        "update pgque.queue set queue_name = repeat('long', 20) || queue_name where queue_id = %s",
    ],
)
def test_a_broken_queue_does_not_stop_the_others(sql, queue, sabotage):
    sql.rows("select pgque.create_queue(%s)", [f"a {queue}"])
    broken = sql.value("select queue_id from pgque.queue where queue_name = %s", [f"a {queue}"])
    sql.rows(sabotage, [broken])
    send(sql, queue, "a")
    try:
        sql.value("select pgque.ticker()")

        assert sql.value("select last_tick_id from pgque.get_queue_info(%s)", [queue]) == 2
    finally:
        sql.rows("select pgque.drop_queue(queue_name, true) from pgque.queue where queue_id = %s", [broken])


def test_a_tick_from_the_future_names_the_way_out(sql, queue):
    sql.rows(
        "update pgque.tick set tick_snapshot = '9000000000000:9000000000000:' from pgque.queue"
        " where tick_queue = queue_id and queue_name = %s",
        [queue],
    )

    with pytest.raises(psycopg.errors.RaiseException, match="Invalid PgQ state: old xmin=9000000000000") as refusal:
        ticker(sql, queue)

    assert "pgque.rebase()" in refusal.value.diag.message_hint


@pytest.mark.parametrize(
    ("setting", "call", "message"),
    [
        (None, "ticker('nowhere')", "no such queue"),
        ("external_ticker", "ticker('{queue}')", "This queue has external tick source."),
        ("ticker_paused", "ticker('{queue}')", "Ticker has been paused for this queue"),
        (None, "force_next_tick('nowhere')", "queue not found: nowhere"),
        ("ticker_paused", "force_tick('{queue}')", "queue {queue} is paused (queue_ticker_paused = true)"),
        (
            "external_ticker",
            "force_tick('{queue}')",
            "queue {queue} is configured for external ticker; force_tick is meaningless — push ticks via"
            " pgque.ticker(queue, tick_id, ts, event_seq)",
        ),
        (None, "ticker('nowhere', 2, now(), 1)", "queue not found: nowhere"),
        (
            None,
            "ticker('{queue}', 2, now(), 1)",
            "queue {queue} is not configured for external ticker (queue_external_ticker = false);"
            " use pgque.ticker(queue) instead",
        ),
        (
            "external_ticker",
            "ticker('{queue}', 1, now(), 1)",
            "external ticker tick_id must be strictly greater than current max (1 <= 1)",
        ),
        (
            "external_ticker",
            "ticker('{queue}', 2, now(), -1)",
            "external ticker event_seq must be >= previous tick (-1 < 0)",
        ),
        (
            None,
            "set_tick_period_ms(3)",
            "tick_period_ms must be an exact divisor of 1000 between 1 and 1000 (got 3)",
        ),
        (
            None,
            "set_tick_period_ms(null)",
            "tick_period_ms must be an exact divisor of 1000 between 1 and 1000 (got NULL)",
        ),
    ],
)
def test_a_wrong_call_is_refused_with_the_words_of_the_contract(sql, queue, setting, call, message):
    if setting:
        sql.rows("select pgque.set_queue_config(%s, %s, 'true')", [queue, setting])

    with pytest.raises(psycopg.errors.RaiseException) as refusal:
        sql.rows(f"select pgque.{call.format(queue=queue)}")

    assert refusal.value.diag.message_primary == message.format(queue=queue)


def test_an_external_source_may_tick(sql, queue):
    sql.rows("select pgque.set_queue_config(%s, 'external_ticker', 'true')", [queue])

    assert sql.value("select pgque.ticker(%s, 40, now(), 100)", [queue]) == 40
    sql.rows("select pgque.set_queue_config(%s, 'external_ticker', 'false')", [queue])
    assert tick(sql, queue) == 41


def test_the_ticker_loop_ticks_for_about_a_second(sql, queue):
    sql.rows("select pgque.set_tick_period_ms(500)")

    sql.rows("call pgque.ticker_loop()")

    sql.rows("select pgque.set_tick_period_ms(100)")
    assert sql.value("select last_tick_id from pgque.get_queue_info(%s)", [queue]) >= 2

"""Creating, configuring and dropping queues."""

import contextlib

import psycopg
import pytest

from tests.support.engine import join, send, tick


def test_a_queue_is_created_once(sql, queue):
    assert sql.value("select pgque.create_queue(%s)", [queue]) == 0


def test_a_new_queue_has_its_first_tick(sql, queue):
    assert sql.value("select last_tick_id from pgque.get_queue_info(%s)", [queue]) == 1


@pytest.mark.parametrize(
    "name",
    [
        "",
        "it's",
        'say "hi"',
        "a.b c",
        "fila de avisos – à espera",
        "é" * 28 + "x",
        "n" * 57,
        "a$body$b",
        "$$",
        "50 %s %L",
        "back\\slash",
        "<table>",
        "two\nlines",
    ],
)
def test_a_queue_may_have_any_name_of_57_bytes(sql, name):
    assert sql.value("select pgque.create_queue(%s)", [name]) == 1

    send(sql, name, "a")

    assert tick(sql, name) == 2
    assert sql.value("select pgque.drop_queue(%s)", [name]) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "select pgque.create_queue('$body$; create table pgque.mine (); select $body$')",
        "select pgque.create_queue(quote_literal(';') || '; create table pgque.mine (); --')",
        "update pgque.queue set queue_data_pfx = 'pgque.mine (); create table pgque.mine', queue_cur_table = 1",
        "update pgque.queue set queue_event_seq = $$'); create table pgque.mine (); --$$, queue_cur_table = 1",
    ],
)
def test_nothing_that_a_queue_is_called_is_ever_run(sql, session, queue, statement):
    one = session()
    one.rows("set check_function_bodies = off")

    with contextlib.suppress(psycopg.Error), one.connection.transaction():
        one.rows(statement)
        one.rows("select pgque.send(queue_name, 'x') from pgque.queue")

    assert one.value("select to_regclass('pgque.mine')::text") is None
    one.rollback()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pgque.create_queue(null)", "Invalid NULL value"),
        ("pgque.create_queue(repeat('n', 58))", "queue name too long: 58 bytes (max 57). pg_notify channel"),
        ("pgque.create_queue(repeat('é', 29))", "queue name too long: 58 bytes"),
        ("pgque.drop_queue('nowhere')", "No such event queue"),
        ("pgque.drop_queue('nowhere', true)", "No such event queue"),
        ("pgque.set_queue_config('nowhere', 'ticker_max_lag', '1 s')", "No such event queue"),
        ("pgque.set_queue_config(null, 'ticker_max_lag', '1 s')", "Invalid NULL value"),
        ("pgque.set_queue_config('{queue}', null, '1 s')", "Invalid NULL value"),
        ("pgque.set_queue_config('{queue}', 'colour', 'red')", 'cannot change parameter "colours"'),
        (
            "pgque.set_queue_config('{queue}', 'max_retries', '-1')",
            "set_queue_config: max_retries must be >= 0, got -1",
        ),
        (
            "pgque.set_queue_config('{queue}', 'ticker_max_count', '0')",
            "set_queue_config: ticker_max_count must be > 0, got 0",
        ),
        (
            "pgque.set_queue_config('{queue}', 'ticker_max_lag', '0 s')",
            "set_queue_config: ticker_max_lag must be > 0, got 00:00:00",
        ),
        (
            "pgque.set_queue_config('{queue}', 'ticker_idle_period', '-1 min')",
            "set_queue_config: ticker_idle_period must be > 0, got -00:01:00",
        ),
        (
            "pgque.set_queue_config('{queue}', 'rotation_period', '0')",
            "set_queue_config: rotation_period must be > 0, got 00:00:00",
        ),
    ],
)
def test_a_wrong_call_is_refused_with_the_words_of_the_contract(sql, queue, call, message):
    with pytest.raises(psycopg.errors.RaiseException) as refusal:
        sql.rows(f"select {call.format(queue=queue)}")

    assert message in str(refusal.value)


@pytest.mark.parametrize(("name", "value"), [("max_retries", "x"), ("ticker_max_lag", "soon"), ("ticker_paused", "?")])
def test_a_value_of_the_wrong_type_is_a_cast_error(sql, queue, name, value):
    with pytest.raises(psycopg.DataError):
        sql.rows("select pgque.set_queue_config(%s, %s, %s)", [queue, name, value])


@pytest.mark.parametrize(
    ("name", "value", "default"),
    [
        ("ticker_max_count", "7", "500"),
        ("ticker_max_lag", "10 milliseconds", "00:00:03"),
        ("ticker_idle_period", "5 s", "00:01:00"),
        ("rotation_period", "1 s", "02:00:00"),
        ("ticker_paused", "true", "false"),
        ("external_ticker", "true", "false"),
        ("max_retries", "0", None),
    ],
)
def test_null_restores_the_default_of_a_setting(sql, queue, name, value, default):
    column = f"select queue_{name}::text from pgque.queue where queue_name = %s"
    before = sql.value(column, [queue])

    sql.rows("select pgque.set_queue_config(%s, %s, %s)", [queue, name, value])
    changed = sql.value(column, [queue])
    sql.rows("select pgque.set_queue_config(%s, %s, null)", [queue, name])

    assert (before, sql.value(column, [queue])) == (default, default)
    assert changed != default


def test_a_queue_with_a_consumer_is_dropped_only_by_force(sql, queue, consumer):
    with pytest.raises(psycopg.errors.RaiseException, match="cannot drop queue, consumers still attached"):
        sql.rows("select pgque.drop_queue(%s)", [queue])

    assert sql.value("select pgque.drop_queue(%s, true)", [queue]) == 1


def test_force_drops_groups_retries_and_dead_letters_too(sql, queue):
    join(sql, queue, "group", "a")
    prefix, queue_id = sql.rows(
        "select replace(queue_data_pfx, 'pgque.', ''), queue_id from pgque.queue where queue_name = %s", [queue]
    )[0]
    sql.rows("select pgque.event_retry_raw(%s, 'group', now(), 1, now(), 1, 't', 'd', null, null, null, null)", [queue])

    sql.rows("select pgque.drop_queue(%s, true)", [queue])

    assert sql.value("select count(*) from pg_class where relname like %s", [prefix + r"\_%"]) == 0
    assert sql.value("select count(*) from pgque.retry_queue where ev_queue = %s", [queue_id]) == 0
    assert sql.value("select count(*) from pgque.consumer where co_name like 'group%%'") == 0

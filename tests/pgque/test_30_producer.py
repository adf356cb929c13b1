"""Sending events."""

import psycopg
import pytest

from tests.support.engine import drain, payloads, receive, tick


def received(sql, queue):
    tick(sql, queue)
    return [(message[2], message[3]) for message in receive(sql, queue, "reader")]


@pytest.mark.parametrize(
    ("call", "stored"),
    [
        ("""send(%s, '{"b":1,  "a":2}'::jsonb)""", ("default", '{"a": 2, "b": 1}')),
        ("""send(%s, '{"b":1,  "a":2}')""", ("default", '{"b":1,  "a":2}')),
        ("""send(%s, 'kind', '{"b":1}'::jsonb)""", ("kind", '{"b": 1}')),
        ("""send(%s, 'kind', 'é 😀 ''quoted'' \\ \n')""", ("kind", "é 😀 'quoted' \\ \n")),
        ("send(%s, 'kind', null::text)", ("kind", None)),
        ("send(%s, 'kind', null::jsonb)", ("kind", None)),
        ("insert_event(%s, 'kind', 'data')", ("kind", "data")),
        ("send(%s, repeat('k', 10000), repeat('x', 1000000))", ("k" * 10000, "x" * 1000000)),
    ],
)
def test_a_payload_arrives_as_it_was_sent(sql, queue, consumer, call, stored):
    sql.rows(f"select pgque.{call}", [queue])

    assert received(sql, queue) == [stored]


def test_the_extra_fields_arrive(sql, queue, consumer):
    sql.rows("select pgque.insert_event(%s, 'kind', 'data', '1', '2', null, '4')", [queue])
    tick(sql, queue)

    assert receive(sql, queue, "reader")[0][6:] == ("1", "2", None, "4")


@pytest.mark.parametrize("kind", ["text", "jsonb"])
def test_a_batch_of_payloads_gets_ids_in_its_order(sql, queue, consumer, kind):
    values = [str(number) for number in range(250, 0, -1)] + [None]

    ids = sql.value(f"select pgque.send_batch(%s, 'kind', %s::{kind}[])", [queue, values])

    assert ids == sorted(ids)
    assert received(sql, queue) == [("kind", value) for value in values]


def test_a_batch_without_type_has_the_default_type(sql, queue, consumer):
    sql.rows("select pgque.send_batch(%s, array['a','b'])", [queue])
    sql.rows("select pgque.send_batch(%s, array['1']::jsonb[])", [queue])

    assert received(sql, queue) == [("default", "a"), ("default", "b"), ("default", "1")]


def test_a_batch_of_several_dimensions_is_flattened(sql, queue, consumer):
    ids = sql.value("select pgque.send_batch(%s, 't', array[['a','b'],['c','d']])", [queue])

    assert len(ids) == 4
    assert received(sql, queue) == [("t", letter) for letter in "abcd"]


def test_an_empty_batch_asks_for_no_queue(sql):
    assert sql.value("select pgque.send_batch('nowhere', 't', '{}'::text[])") == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("send('nowhere', 'a')", "queue not found: nowhere"),
        ("send('nowhere', 't', '1'::jsonb)", "queue not found: nowhere"),
        ("send(null, 't', '1'::jsonb)", "queue not found: <NULL>"),
        ("insert_event('nowhere', 't', 'd')", "queue not found: nowhere"),
        ("send_batch('nowhere', 't', array['a'])", "queue not found: nowhere"),
        ("send_batch('nowhere', 't', null::text[])", "payloads must not be null"),
        ("current_event_table('nowhere')", "Event queue not found"),
    ],
)
def test_a_wrong_call_is_refused_with_the_words_of_the_contract(sql, call, message):
    with pytest.raises(psycopg.errors.RaiseException) as refusal:
        sql.rows(f"select pgque.{call}")

    assert refusal.value.diag.message_primary == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("send(%s, 't', 'a')", "Insert into queue disallowed"),
        ("send_batch(%s, 't', array['a'])", "Insert into queue disallowed"),
        ("insert_event(%s, 't', 'a')", "Insert into queue disallowed"),
        ("current_event_table(%s)", "Writing to queue disabled"),
    ],
)
def test_a_disabled_queue_takes_events_from_replication_alone(sql, queue, call, message):
    sql.rows("update pgque.queue set queue_disable_insert = true where queue_name = %s", [queue])

    with pytest.raises(psycopg.errors.RaiseException, match=message):
        sql.rows(f"select pgque.{call}", [queue])

    sql.rows("set session_replication_role = replica")
    sql.rows(f"select pgque.{call}", [queue])


def test_a_rolled_back_event_never_arrives(sql, session, queue, consumer):
    other = session()
    other.rows("select pgque.send(%s, 't', 'lost')", [queue])
    other.rollback()
    sql.rows("select pgque.send(%s, 't', 'kept')", [queue])
    tick(sql, queue)

    assert payloads(receive(sql, queue, "reader")) == ["kept"]


def test_an_event_sent_in_a_savepoint_arrives(sql, session, queue, consumer):
    other = session()
    with other.connection.transaction(), other.connection.transaction():
        other.rows("select pgque.send(%s, 't', 'nested')", [queue])
    other.commit()
    tick(sql, queue)

    assert payloads(receive(sql, queue, "reader")) == ["nested"]


def test_the_current_table_is_a_real_table_with_the_event(sql, queue):
    sql.rows("select pgque.send(%s, 'kind', 'data')", [queue])
    table = sql.value("select pgque.current_event_table(%s)", [queue])

    assert sql.rows(f"select ev_id, ev_type, ev_data from {table}") == [(1, "kind", "data")]
    assert table == sql.value(
        "select queue_data_pfx || '_' || queue_cur_table from pgque.queue where queue_name = %s", [queue]
    )


@pytest.mark.parametrize(
    "function", ["insert_event(text, text, text, text, text, text, text)", "send(text, text, jsonb)"]
)
def test_code_that_sends_to_a_queue_is_written_when_it_is_created(sql, queue, function):
    table = sql.value("select pgque.current_event_table(%s)", [queue])

    code = sql.value("select prosrc from pg_proc where oid = %s::regprocedure", [f"pgque.{function}"])

    assert f"insert into {table} values" in code


def test_a_queue_beyond_the_first_hundred_is_written_to_as_well(sql, session, queue, consumer):
    one = session()
    one.rows("set local session_replication_role = replica")
    one.rows(
        "insert into pgque.queue (queue_id, queue_name, queue_data_pfx, queue_event_seq, queue_tick_seq)"
        " select -n, 'earlier ' || n, '', '', '' from generate_series(1, 100) n"
    )
    one.rows("select pgque._write_sending(), pgque._write_dispatch()")

    one.rows("select pgque.send(%s, 'single')", [queue])
    one.rows("select pgque.send_batch(%s, '{of,many}'::text[])", [queue])

    one.rows("delete from pgque.queue where queue_id < 0")
    one.rows("select pgque._write_sending(), pgque._write_dispatch()")
    one.commit()
    tick(sql, queue)
    assert drain(sql, queue, consumer) == ["single", "of", "many"]

"""Nack, retries and their way back."""

import psycopg
import pytest

from tests.support.engine import ack, drain, nack, payloads, receive, send, tick


@pytest.fixture
def batch(sql, queue, consumer):
    """An open batch of the messages a, b and c."""
    send(sql, queue, "a", "b", "c")
    tick(sql, queue)
    return receive(sql, queue, consumer)


def waiting(sql, queue):
    return sql.rows(
        "select ev_id, ev_retry, ev_owner is not null, ev_txid from pgque.retry_queue"
        " join pgque.queue on ev_queue = queue_id where queue_name = %s order by ev_id",
        [queue],
    )


def come_back(sql, queue):
    sql.rows("update pgque.retry_queue set ev_retry_after = now()")
    moved = sql.value("select pgque.maint_retry_events()")
    tick(sql, queue)
    return moved


def test_a_nacked_message_comes_again_with_its_id_and_a_count(sql, queue, consumer, batch):
    nack(sql, batch[1][1], batch[1][0])
    ack(sql, batch[1][1])
    come_back(sql, queue)

    [again] = receive(sql, queue, consumer)

    assert (again[0], again[3], again[4], again[5]) == (batch[1][0], "b", 1, batch[1][5])


def test_a_message_is_delivered_six_times_and_then_a_dead_letter(sql, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    counts = []
    while messages := receive(sql, queue, consumer):
        counts.append(messages[0][4])
        nack(sql, messages[0][1], messages[0][0], reason="no good")
        ack(sql, messages[0][1])
        come_back(sql, queue)

    assert counts == [None, 1, 2, 3, 4, 5]
    assert sql.rows("select dl_reason, ev_data, ev_retry from pgque.dlq_inspect(%s)", [queue]) == [("no good", "a", 5)]


def test_a_second_nack_keeps_the_first_delay(sql, queue, batch):
    nack(sql, batch[0][1], batch[0][0], "1 hour")

    assert nack(sql, batch[0][1], batch[0][0], "0 seconds") == 1
    assert len(waiting(sql, queue)) == 1
    assert sql.value("select pgque.maint_retry_events()") == 0


@pytest.mark.parametrize(("delay", "seconds"), [("90.4 seconds", 90), ("-1 hour", -3600), ("00:00:00.6", 1)])
def test_the_delay_is_rounded_to_seconds(sql, session, queue, batch, delay, seconds):
    one = session()
    nack(one, batch[0][1], batch[0][0], delay)

    assert one.value("select extract(epoch from max(ev_retry_after) - now())::int from pgque.retry_queue") == seconds


def test_only_the_id_of_the_message_counts(sql, queue, consumer, batch):
    sql.rows(
        "select pgque.nack(%s, row(%s, 0, 'forged', 'forged', 99, now(), 'x', 'x', 'x', 'x')::pgque.message)",
        [batch[0][1], batch[0][0]],
    )

    assert sql.rows(
        "select ev_type, ev_data, ev_extra1, ev_retry from pgque.retry_queue where ev_id = %s and ev_data = 'a'",
        [batch[0][0]],
    ) == [("noted", "a", None, 1)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("nack(-1, row({id},null,null,null,null,null,null,null,null,null)::pgque.message)", "batch not found: -1"),
        (
            "nack({batch}, row(999,null,null,null,null,null,null,null,null,null)::pgque.message)",
            "msg_id 999 not found in batch {batch}",
        ),
        ("nack({batch}, null)", "msg_id <NULL> not found in batch {batch}"),
        ("event_retry({batch}, 999, 1)", "event not found"),
        ("event_retry(-1, 1, 1)", "event not found"),
        ("batch_retry(-1, 1)", "batch_retry: batch -1 not found"),
        (
            "event_retry_raw('{queue}', 'nobody', now(), 1, now(), 1, 't', 'd', null, null, null, null)",
            "consumer not registered",
        ),
    ],
)
def test_a_wrong_call_is_refused_with_the_words_of_the_contract(sql, queue, batch, call, message):
    names = {"id": batch[0][0], "batch": batch[0][1], "queue": queue}

    with pytest.raises(psycopg.errors.RaiseException) as refusal:
        sql.rows(f"select pgque.{call.format(**names)}")

    assert refusal.value.diag.message_primary == message.format(**names)


def test_an_event_of_another_batch_is_not_found(sql, queue, consumer, batch):
    ack(sql, batch[0][1])
    send(sql, queue, "d")
    tick(sql, queue)
    later = receive(sql, queue, consumer)

    with pytest.raises(psycopg.errors.RaiseException, match="not found in batch"):
        nack(sql, later[0][1], batch[0][0])


def test_a_taken_back_batch_takes_no_nack(sql, queue, batch):
    ack(sql, batch[0][1])

    with pytest.raises(psycopg.errors.RaiseException, match="batch not found"):
        nack(sql, batch[0][1], batch[0][0])


def test_event_retry_knows_what_waits_already(sql, queue, batch):
    first = sql.value("select pgque.event_retry(%s, %s, 0)", [batch[0][1], batch[0][0]])
    second = sql.value("select pgque.event_retry(%s, %s, now())", [batch[0][1], batch[0][0]])

    assert (first, second) == (1, 0)


def test_batch_retry_takes_every_event_once(sql, queue, consumer, batch):
    calls = [sql.value("select pgque.batch_retry(%s, 0)", [batch[0][1]]) for _ in range(2)]
    ack(sql, batch[0][1])
    come_back(sql, queue)

    assert calls == [3, 0]
    assert drain(sql, queue, consumer) == ["a", "b", "c"]


def test_all_due_retries_come_back_in_one_call(sql, queue, consumer):
    send(sql, queue, *[str(number) for number in range(300)])
    tick(sql, queue)
    messages = receive(sql, queue, consumer)
    sql.rows("select pgque.batch_retry(%s, 0)", [messages[0][1]])
    ack(sql, messages[0][1])

    assert come_back(sql, queue) == 300
    assert payloads(receive(sql, queue, consumer)) == payloads(messages)
    assert waiting(sql, queue) == []


def test_retries_that_came_back_count_as_new_events(sql, queue, batch):
    nack(sql, batch[0][1], batch[0][0])
    before = sql.value("select ev_new from pgque.get_queue_info(%s)", [queue])

    sql.value("select pgque.maint_retry_events()")

    assert sql.value("select ev_new from pgque.get_queue_info(%s)", [queue]) == before + 1


@pytest.mark.parametrize(
    "sabotage",
    [
        "update pgque.queue set queue_disable_insert = true where queue_name = %s",
        "update pgque.queue set queue_cur_table = 7 where queue_name = %s",
    ],
)
def test_a_queue_that_refuses_keeps_its_retries_and_stops_no_other(sql, queue, consumer, batch, sabotage):
    other = f"a {queue}"
    sql.rows("select pgque.create_queue(%s)", [other])
    sql.rows("select pgque.subscribe(%s, 'reader')", [other])
    sql.rows(
        "select pgque.event_retry_raw(%s, 'reader', now(), 1, now(), 1, 't', 'd', null, null, null, null)", [other]
    )
    nack(sql, batch[0][1], batch[0][0])
    sql.rows(sabotage, [other])

    assert sql.value("select pgque.maint_retry_events()") == 1
    assert (len(waiting(sql, queue)), len(waiting(sql, other))) == (0, 1)
    sql.rows("select pgque.drop_queue(%s, true)", [other])


def test_a_nack_looks_up_one_event_whatever_the_size_of_the_batch(sql, queue, consumer):
    sql.rows("select pgque.send_batch(%s, 't', array_agg(n::text)) from generate_series(1, 20000) n", [queue])
    tick(sql, queue)
    batch = sql.value("select pgque.next_batch(%s, 'reader')", [queue])
    sql.rows("set track_functions = none")
    reads = "select pg_stat_get_xact_tuples_returned(%s::regclass)"
    table = sql.value("select pgque.current_event_table(%s)", [queue])
    sql.rows("begin")

    nack(sql, batch, 15000)

    assert sql.value(reads, [table]) < 10
    sql.rows("commit")

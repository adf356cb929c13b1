"""The official Python client works on this engine, its error classes included."""

from concurrent.futures import ThreadPoolExecutor

import pgque
import psycopg
import pytest

from tests.support.engine import send, tick
from tests.support.waiting import wait_until


@pytest.fixture
def client(url):
    with pgque.connect(url, autocommit=True) as one:
        yield one


def test_events_travel_through_the_client(sql, client, queue):
    client.subscribe(queue, "reader")
    sent = [client.send(queue, {"n": 1}), client.send(queue, "2", type="kind")]
    sent += client.send_batch(queue, "kind", [{"n": 3}, None])
    tick(sql, queue)

    messages = client.receive(queue, "reader")

    assert [message.msg_id for message in messages] == sent
    assert [message.type for message in messages] == ["default", "kind", "kind", "kind"]
    assert client.ack(messages[0].batch_id) == 1
    assert client.receive(queue, "reader") == []


def test_the_client_ticks_and_nacks(client, queue):
    client.subscribe(queue, "reader")
    client.send(queue, {"n": 1})
    client.force_next_tick(queue)
    assert client.ticker(queue) == 2
    [message] = client.receive(queue, "reader")

    client.nack(message.batch_id, message, retry_after=0)
    client.ack(message.batch_id)
    client.conn.execute("select pgque.maint_retry_events()")
    client.force_next_tick(queue)
    client.ticker_all()

    assert [again.retry_count for again in client.receive(queue, "reader")] == [1]


def test_members_of_a_group_work_through_the_client(sql, client, queue):
    assert client.subscribe_subconsumer(queue, "group", "a") == 1
    client.send(queue, {"n": 1})
    tick(sql, queue)

    [message] = client.receive_coop(queue, "group", "a", dead_interval="1 minute")

    assert client.touch_subconsumer(queue, "group", "a") == 1
    assert client.ack(message.batch_id) == 1
    assert client.unsubscribe_subconsumer(queue, "group", "a") == 1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda client, queue: client.send("nowhere", {}), pgque.PgqueQueueNotFound),
        (lambda client, queue: client.send_batch("nowhere", "t", [{}]), pgque.PgqueQueueNotFound),
        (lambda client, queue: client.receive(queue, "nobody"), pgque.PgqueConsumerNotFound),
        (lambda client, queue: client.nack(-1, pgque.Message(*[None] * 10)), pgque.PgqueBatchNotFound),
        (lambda client, queue: client.subscribe("nowhere", "c"), pgque.PgqueError),
        (lambda client, queue: client.ticker("nowhere"), pgque.PgqueError),
    ],
)
def test_errors_have_the_classes_of_the_client(client, queue, call, error):
    with pytest.raises(error) as caught:
        call(client, queue)

    assert type(caught.value) is error


def test_an_overflow_has_a_class_of_its_own(sql, client, queue):
    client.subscribe(queue, "reader")
    client.send_batch(queue, "t", [{}, {}])
    tick(sql, queue)

    with pytest.raises(pgque.PgqueReceiveOverflowError) as caught:
        client.receive(queue, "reader", max_messages=1)

    assert (caught.value.sqlstate, caught.value.configured_limit) == ("54000", 1)
    assert len(client.receive(queue, "reader", max_messages=2)) == 2


def test_what_a_transaction_sent_is_not_received_in_it(url, queue):
    with pgque.connect(url) as client:
        client.subscribe(queue, "reader")
        client.conn.commit()
        client.send(queue, {"n": 1})
        client.force_next_tick(queue)
        client.ticker(queue)

        assert client.receive(queue, "reader") == []
        assert client.conn.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS


@pytest.mark.parametrize("subconsumer", [None, "a"])
def test_the_clients_loop_handles_nacks_and_wakes_on_a_tick(sql, url, queue, subconsumer):
    consumer = pgque.Consumer(
        url, queue=queue, name="loop", poll_interval=5, retry_after=0, subconsumer=subconsumer, dead_interval=None
    )
    handled = []

    @consumer.on("flaky")
    def handle(message):
        handled.append((message.payload, message.retry_count))
        if message.retry_count is None:
            raise RuntimeError("not yet")

    def drive():
        wait_until(lambda: handled, timeout=20)
        wait_until(lambda: sql.value("select pgque.maint_retry_events()"), timeout=20)
        tick(sql, queue)
        wait_until(lambda: len(handled) == 2, timeout=20)
        consumer.stop()
        tick(sql, queue)

    if subconsumer:
        sql.rows("select pgque.subscribe_subconsumer(%s, 'loop', 'a')", [queue])
    else:
        sql.rows("select pgque.subscribe(%s, 'loop')", [queue])
    send(sql, queue, '{"n": 1}', kind="flaky")
    tick(sql, queue)
    with ThreadPoolExecutor(1) as pool:
        driver = pool.submit(drive)
        consumer.start()
        driver.result()

    assert handled == [('{"n": 1}', None), ('{"n": 1}', 1)]

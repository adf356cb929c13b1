"""stega/pgque/client.py: what it refuses before the engine is asked, and what it leaves on the disk."""

import uuid
from datetime import timedelta

import pytest
from django.db import connections, transaction

from stega.pgque import client
from tests.support.event_log import tick

pytestmark = pytest.mark.django_db(databases=["default", "events"], transaction=True)


@pytest.mark.parametrize(
    "ask",
    [
        lambda queue: client.ticker(),
        client.tick,
        lambda queue: client.next_batch(queue, "notification_worker"),
        lambda queue: client.next_batch_coop(queue, "sla_breach_dispatcher", "member", timedelta(seconds=120)),
    ],
    ids=["ticker", "tick", "next_batch", "next_batch_coop"],
)
def test_nothing_is_ticked_or_received_in_the_transaction_that_sends(queue, ask):
    with transaction.atomic(using="events"), pytest.raises(transaction.TransactionManagementError, match="outside"):
        ask(queue)


def open_alone(queue):
    client.subscribe(queue, "reader")
    return lambda: client.next_batch(queue, "reader")


def open_as_member(queue):
    client.subscribe_subconsumer(queue, "reader", "member")
    return lambda: client.next_batch_coop(queue, "reader", "member", timedelta(seconds=120))


@pytest.mark.parametrize("reader", [open_alone, open_as_member])
def test_the_number_of_a_batch_is_on_the_disk_before_anybody_works_under_it(queue, reader):
    open_batch = reader(queue)
    client.insert_event(queue, "ticket.welcome", {}, str(uuid.uuid4()))
    tick(queue)
    before = log_position("insert")

    assert open_batch()

    assert log_position("flush") > before


def log_position(kind):
    with connections["events"].cursor() as cursor:
        cursor.execute(f"select pg_current_wal_{kind}_lsn() - '0/0'")
        return cursor.fetchone()[0]

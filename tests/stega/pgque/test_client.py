"""stega/pgque/client.py: what it refuses before the engine is asked."""

from datetime import timedelta

import pytest
from django.db import transaction

from stega.pgque import client

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

"""What a database that hangs behind a pooler costs: the pooler takes every question and says nothing."""

import re
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone

from stega import outbox
from stega.models import OutboxEntry
from tests.factories import make_product, make_ticket
from tests.processes.test_hangs import (  # noqa: F401 - told again
    address,
    test_default_hangs_and_visitors_get_a_plain_answer_while_probes_are_answered_at_once,
)
from tests.support.servers import by_alias
from tests.support.sessions import Session
from tests.support.waiting import wait_until

RUNS = 6
"""More than TASK_MAX_ATTEMPTS."""


@pytest.fixture
def pooler_settings():
    """The pooler's own patience is longer than anybody's."""
    return {"default_pool_size": 2, "query_wait_timeout": 120}


@pytest.fixture
def late(customer):
    """A promise that has waited for so long that its runs are counted before they begin."""
    ticket = make_ticket(customer, make_product())
    with transaction.atomic():
        outbox.enqueue("publish_ticket_created", ticket.pk)
    OutboxEntry.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    outbox.sweep()
    OutboxEntry.objects.update(relayed_at=timezone.now() - timedelta(minutes=5))
    return OutboxEntry.objects.get()


@pytest.fixture
def cluster(start):
    def cluster():
        return start("qcluster", saying="ready for work", TASK_TIMEOUT_SECONDS=2, TASK_RETRY_SECONDS=3)

    return cluster


def has_given_way(cluster):
    runs = re.findall(r"Failed 'stega\.outbox\.perform' .* - OperationalError at ", cluster.output)
    return len(runs) >= RUNS


def require_done_without_an_attempt(entry, cluster):
    """All other runs ended with an outage, and so did scheduled tasks: no worker was cut. Success counts no run."""
    wait_until(lambda: OutboxEntry.objects.get(pk=entry.pk).done_at, timeout=30)
    assert OutboxEntry.objects.get(pk=entry.pk).attempts == 0
    assert "reincarnated" not in cluster.output


def test_a_lock_on_default_costs_a_task_no_attempt(late, cluster):
    with Session(by_alias["default"].url(str(connections["default"].settings_dict["NAME"]))) as holder:
        holder.rows("lock table tickets_ticket in access exclusive mode")
        worker = cluster()
        wait_until(lambda: has_given_way(worker), timeout=120)

    require_done_without_an_attempt(late, worker)


@pytest.mark.parametrize("alias", ["default", "events"])
def test_a_pause_costs_a_task_no_attempt_however_long_it_is(late, cluster, pooler, alias):
    worker = cluster()
    wait_until(lambda: OutboxEntry.objects.get(pk=late.pk).done_at, timeout=30)
    OutboxEntry.objects.filter(pk=late.pk).update(done_at=None, attempts=0)

    database = connections[alias].settings_dict["NAME"]
    pooler.tell(f'pause "{database}"')
    outbox._enqueue_tasks(late.task, [late.key])
    wait_until(lambda: has_given_way(worker), timeout=120)
    pooler.tell(f'resume "{database}"')

    require_done_without_an_attempt(late, worker)

"""stega/outbox.py: what is over is pruned, and what was given up may be let be."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from stega import outbox
from stega.models import OutboxEntry

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def test_pruning_keeps_what_is_open_failed_or_young(entry):
    long_ago = timezone.now() - timedelta(days=31)
    old = OutboxEntry.objects.create(key=uuid.uuid4(), task="note", done_at=long_ago)
    failed = OutboxEntry.objects.create(key=uuid.uuid4(), task="note", failed_at=long_ago)
    young = OutboxEntry.objects.create(key=uuid.uuid4(), task="note", done_at=timezone.now())

    assert outbox.prune() == {"pruned": 1}
    assert set(OutboxEntry.objects.values_list("key", flat=True)) == {entry.key, failed.key, young.key}
    assert not OutboxEntry.objects.filter(key=old.key).exists()


@pytest.mark.parametrize("days", [29, 31])
def test_what_was_let_be_is_pruned_by_its_end(transactional_db, days):
    ended_at = timezone.now() - timedelta(days=days)
    OutboxEntry.objects.create(
        key=uuid.uuid4(), task="note", failed_at=timezone.now() - timedelta(days=99), done_at=ended_at
    )

    assert outbox.prune() == {"pruned": int(days > 30)}


@pytest.mark.parametrize("fields", [{}, {"done_at": timezone.now()}], ids=["open", "done"])
def test_only_what_was_given_up_can_be_let_be(entry, fields):
    OutboxEntry.objects.update(**fields)

    assert OutboxEntry.objects.settle(OutboxEntry.objects.values("pk")) == 0


def test_what_was_let_be_neither_runs_nor_is_tried_again(entry):
    OutboxEntry.objects.update(failed_at=timezone.now())
    OutboxEntry.objects.settle(OutboxEntry.objects.values("pk"))

    reopened = OutboxEntry.objects.reopen(OutboxEntry.objects.values("pk"))

    assert reopened == 0
    assert outbox.perform(str(entry.key)) == {"skipped": "done or let be before"}

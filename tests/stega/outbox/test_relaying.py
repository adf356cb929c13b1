"""stega/outbox.py: the fast path costs a request little, and the sweep takes what it missed."""

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from django_q.models import OrmQ

from stega import outbox
from stega.models import OutboxEntry
from tests.stega.outbox.entries import queued_keys
from tests.stega.outbox.tasks import lose_the_database, performed

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def test_a_jobs_database_that_is_away_costs_the_change_nothing(monkeypatch):
    monkeypatch.setattr(outbox, "_enqueue_tasks", lambda task, keys: lose_the_database(event_key=None))

    with transaction.atomic():
        outbox.enqueue("note", 1)

    assert OutboxEntry.objects.get().relayed_at is None


def test_after_a_failure_the_fast_path_rests(monkeypatch):
    tries = []
    monkeypatch.setattr(outbox, "_enqueue_tasks", lambda task, keys: tries.append(keys) or 1 / 0)

    for number in range(3):
        with transaction.atomic():
            outbox.enqueue("note", number)

    assert len(tries) == 1


def test_a_hanging_jobs_database_costs_one_request_the_bounded_time(settings, monkeypatch):
    release = threading.Event()
    settings.OUTBOX_FAST_PATH_SECONDS = 0.05
    monkeypatch.setattr(outbox, "_enqueue_tasks", lambda task, keys: release.wait(60))

    with transaction.atomic():
        outbox.enqueue("note", 1)
    with transaction.atomic():
        outbox.enqueue("note", 2)

    assert OutboxEntry.objects.filter(relayed_at=None).count() == 2
    release.set()


def test_the_bounded_fast_path_relays_on_a_thread_of_its_own(settings):
    settings.OUTBOX_FAST_PATH_SECONDS = 30.0

    with transaction.atomic():
        outbox.enqueue("note", 1)

    assert OrmQ.objects.count() == 1


def test_the_sweep_relays_what_the_fast_path_missed(entry):
    OutboxEntry.objects.update(created_at=timezone.now() - timedelta(seconds=11))

    assert outbox.sweep() == {"relayed": 1}
    assert queued_keys() == {str(entry.key)}
    assert outbox.sweep() == {"relayed": 0}


def test_the_sweep_leaves_a_fresh_entry_to_the_fast_path(entry):
    assert outbox.sweep() == {"relayed": 0}


def test_an_entry_relayed_long_ago_and_never_done_is_relayed_again(entry):
    OutboxEntry.objects.update(relayed_at=timezone.now() - timedelta(seconds=901))

    assert outbox.sweep() == {"relayed": 1}


def test_entries_that_shared_a_task_which_was_never_done_are_relayed_one_by_one():
    with transaction.atomic():
        outbox.enqueue_many("note", [(uuid.uuid4(), (number,)) for number in range(3)])
    OutboxEntry.objects.update(relayed_at=timezone.now() - timedelta(seconds=901))
    OrmQ.objects.all().delete()

    outbox.sweep()

    assert [len(package.task["args"]) for package in OrmQ.objects.all()] == [1, 1, 1]


def test_an_entry_that_commits_late_is_not_overlooked_by_the_sweep(entry):
    """The order of ids is not the order of commits: a younger entry is swept first, then the older id appears."""
    OutboxEntry.objects.update(created_at=timezone.now() - timedelta(seconds=60))
    outbox.sweep()
    late = OutboxEntry(id=entry.id - 1, key=uuid.uuid4(), task="note", args=[8], created_at=entry.created_at)
    late.created_at = timezone.now() - timedelta(seconds=70)
    late.save(force_insert=True)

    assert outbox.sweep() == {"relayed": 1}


def test_many_entries_share_tasks(monkeypatch):
    monkeypatch.setattr(outbox, "PAGE", 2)

    with transaction.atomic():
        outbox.enqueue_many("note", [(uuid.uuid4(), (number,)) for number in range(5)])

    pages = [package.task["args"] for package in OrmQ.objects.all()]
    for page in pages:
        outbox.perform(*page)
    assert sorted(map(len, pages)) == [1, 2, 2]
    assert sorted(number for number, _ in performed) == [0, 1, 2, 3, 4]

"""What can be acted on, and who does."""

import uuid

import pytest
from django.db import connections
from django.utils import timezone
from django_q.models import Schedule

from operations import performing
from operations.models import Kind
from stega.models import OutboxEntry
from stega.tasks import schedules


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(performing, "PROBE_LOOKS_SECONDS", 0.0)


@pytest.fixture
def browser(as_user, operator):
    return as_user(operator)


@pytest.fixture
def targets(queue, letters, group):
    """What each kind of action can be done to now, and how many rows that is."""
    schedules.install()
    entries = [
        OutboxEntry.objects.create(
            key=uuid.uuid4(), task="send_welcome_notification", args=[1], failed_at=timezone.now()
        )
        for _number in range(2)
    ]
    return {
        Kind.REPLAY_LETTER: ({"id": letters["bad"][0]}, 1),
        Kind.PURGE_LETTER: ({"id": letters["bad"][0]}, 1),
        Kind.REPLAY_GROUP: (group, 150),
        Kind.PURGE_GROUP: (group, 150),
        Kind.RETRY_ENTRY: ({"key": entries[0].key}, 1),
        Kind.RETRY_ENTRIES: ({}, 2),
        Kind.SETTLE_ENTRY: ({"key": entries[0].key}, 1),
        Kind.SETTLE_ENTRIES: ({}, 2),
        Kind.RUN_SCHEDULE: ({"name": "outbox sweep"}, 1),
    }


@pytest.fixture
def take_away(targets):
    """Make the target of an action vanish."""

    def take_away(kind):
        with connections["events"].cursor() as cursor:
            cursor.execute("delete from pgque.dead_letter")
        OutboxEntry.objects.update(failed_at=None)
        Schedule.objects.all().delete()

    return take_away

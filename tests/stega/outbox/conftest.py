"""An outbox with tasks of the tests' own and the fast path awake; entries in it."""

import uuid
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from stega import outbox
from stega.models import OutboxEntry
from tests.stega.outbox.tasks import TASKS, performed


@pytest.fixture(autouse=True)
def tasks(settings, monkeypatch):
    settings.TASKS = django_settings.TASKS | TASKS
    settings.OUTBOX_FAST_PATH_SECONDS = 0
    monkeypatch.setattr(outbox, "_rest_until", 0.0)
    performed.clear()


@pytest.fixture
def entry():
    """An entry that is in the outbox and nowhere else."""
    return OutboxEntry.objects.create(key=uuid.uuid4(), task="note", args=[7])


@pytest.fixture
def late(entry):
    """The entry, after a backlog."""
    OutboxEntry.objects.update(relayed_at=timezone.now() - timedelta(minutes=5))
    return entry

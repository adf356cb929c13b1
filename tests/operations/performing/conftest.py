"""A consumer with dead letters of one cause, and operators who ask for something to be done about them."""

import uuid

import pytest

from accounts.roles import Role
from operations import performing
from operations.models import OperatorAction
from operations.targets import TARGETS
from stega.models import OutboxEntry
from stega.pgque import client
from stega.pgque.consumer import Consumer
from tests.factories import make_user
from tests.operations.performing.standing import CAUSE, WORKER
from tests.support.event_log import tick
from tests.support.letters import bury


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(performing, "PROBE_LOOKS_SECONDS", 0.0)


@pytest.fixture
def handler():
    """A handler that does what a test tells it to; the ids it has handled."""

    class Handler:
        def __init__(self):
            self.handled = []
            self.fault = None

        def __call__(self, message):
            if self.fault:
                raise self.fault
            self.handled.append(message.id)

    return Handler()


@pytest.fixture
def consume(queue, handler):
    """Let the consumer handle all that was sent so far."""
    consumer = Consumer(WORKER, {"ticket.welcome": handler})
    client.subscribe(queue, WORKER)

    def consume():
        tick(queue)
        consumer.run(until_idle=True)

    return consume


@pytest.fixture
def group(queue, consume):
    bury(queue, WORKER, CAUSE, count=20)
    return {"queue": queue, "consumer": WORKER, "type": "ticket.welcome", "cause": CAUSE}


@pytest.fixture
def ask(transactional_db):
    """An action as the console records it."""
    operator = make_user("operator", Role.ADMIN)

    def ask(kind, target):
        extent = TARGETS[kind].count(target, None)
        return OperatorAction.objects.create(
            kind=kind, actor=operator, target=target, count=extent.count, up_to=extent.up_to, reason="why"
        ).pk

    return ask


@pytest.fixture
def promise(transactional_db):
    """The key of an outbox entry that works on an action."""

    def promise(action, **values):
        entry = OutboxEntry.objects.create(key=uuid.uuid4(), task="perform_operator_action", args=[action], **values)
        return str(entry.key)

    return promise

import uuid
from datetime import timedelta

import pytest
from django.db import OperationalError, connections
from django.utils import timezone

from operations import performing
from operations.facts import actions
from operations.facts.reading import read
from operations.models import Kind, OperatorAction, State
from operations.performing import perform
from stega import outbox
from stega.models import OutboxEntry
from stega.pgque import oversight
from tests.operations.performing.standing import left, state_of

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def test_while_the_event_log_is_away_the_task_stays_queued(group, ask, monkeypatch):
    action = ask(Kind.PURGE_GROUP, group)
    entry = OutboxEntry.objects.create(key=uuid.uuid4(), task="perform_operator_action", args=[action])
    connections["events"].close()
    monkeypatch.setitem(connections["events"].settings_dict, "HOST", "/nowhere")

    with pytest.raises(Exception, match="nowhere"):
        outbox.perform(str(entry.key))
    monkeypatch.undo()
    outbox.perform(str(entry.key))

    assert (state_of(action), left(group)) == (State.DONE, 0)


def test_a_fault_of_our_own_is_named_on_the_record_and_quoted_nowhere(group, ask, monkeypatch, caplog):
    action = ask(Kind.PURGE_GROUP, group)

    words = "postgresql://somebody:password@host"

    def fail(*args):
        raise LookupError(words)

    monkeypatch.setattr(oversight, "purge_dead_letters", fail)

    perform(action)

    assert state_of(action) == State.FAILED
    assert OperatorAction.objects.get().detail.startswith("LookupError at ")
    assert "somebody" not in caplog.text


def test_what_the_engine_refuses_ends_the_action_with_its_words(group, ask, queue):
    action = ask(Kind.REPLAY_GROUP, group)
    with connections["events"].cursor() as cursor:
        cursor.execute("update pgque.queue set queue_disable_insert = true where queue_name = %s", [queue])

    perform(action)

    assert (state_of(action), OperatorAction.objects.get().outcome) == (State.FAILED, performing.REFUSED)
    assert OperatorAction.objects.get().detail == "Insert into queue disallowed"
    assert left(group) == 20


def still():
    return read(actions.question()).value.longest_still


def age():
    """Let all have been asked for an hour ago, though the database refuses that."""
    with connections["default"].cursor() as cursor:
        cursor.execute("alter table operations_operatoraction disable trigger operations_keep_action")
        OperatorAction.objects.update(requested_at=timezone.now() - timedelta(hours=1))
        cursor.execute("alter table operations_operatoraction enable trigger operations_keep_action")


def test_an_action_that_is_only_tried_stands_still_and_one_that_goes_on_or_is_over_does_not(group, ask, monkeypatch):
    before = still()
    action = ask(Kind.PURGE_GROUP, group)
    age()
    with monkeypatch.context() as during:
        during.setattr(oversight, "purge_dead_letters", away)
        with pytest.raises(OperationalError):
            perform(action)
    tried = still()
    perform(action, seconds=0)
    moved = still()
    perform(action)

    assert (before, still()) == (None, None)
    assert tried > timedelta(minutes=59)
    assert moved < timedelta(minutes=1)


def away(*args):
    raise OperationalError("connection refused")

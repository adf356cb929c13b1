"""Doing what an operator asked for, step by step: what a task worker runs.

Every step is a short transaction on the database it changes, and is then written down on `default`. A worker that dies
between the two has done more than is written down; the next one goes on with what is left, and never does a row twice.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_noop
from django_q.models import Schedule

from notifications.models import Delivery
from operations import ways
from operations.dead_letters import GroupKey
from operations.models import FAILED_AGAIN, NOT_TAKEN, TASK, WAITS_AGAIN, Kind, OperatorAction, State
from stega import outbox
from stega.database import clock
from stega.database.outages import is_outage
from stega.models import OutboxEntry
from stega.pgque import oversight
from stega.wording.text import clean, told, trace

logger = logging.getLogger(__name__)

BATCH = 500
"""Rows of one transaction."""
LOOK_SECONDS = 0.2
PROBE_LOOKS_SECONDS = 5.0
"""How long a worker itself looks after what it sent first; then the schedule of each minute does."""
PROBE_PATIENCE = timedelta(minutes=10)
"""How long the consumer may take for what was sent first."""

NOTHING_LEFT = gettext_noop("Nothing was left to do: it was done before, or is gone")
ALL_DONE = gettext_noop("All done")
SENT_AGAIN = gettext_noop("Sent again, for the consumer to handle: %(count)s")
LEFT_TO_SWEEP = gettext_noop("Handed over to the sweep, which relays them each minute: %(count)s")
LEFT_TO_CLUSTER = gettext_noop("Due now: a cluster of task workers runs it at its next look at the schedules")
FAILS_STILL = gettext_noop("Some failed again in the same way, so the rest was left alone")
LET_BE = gettext_noop("Its own outbox entry was given up, and an operator let it be")
REFUSED = gettext_noop("The database refused")


@dataclass(frozen=True, slots=True)
class Step:
    """What came of one step: rows touched, and the state after it. Without `is_over` there is more to do."""

    state: State
    touched: int = 0
    outcome: str = ""
    detail: str = ""

    @property
    def is_over(self) -> bool:
        return self.state in (State.DONE, State.STOPPED, State.FAILED)


def perform(action_id: int, *, seconds: float | None = None) -> dict[str, Any]:
    """Work on the action until it is over, waits, or TASK_STEP_SECONDS (or `seconds`) have passed; then another task
    goes on with it.

    One worker at a time: the claim is a lease on the database's clock. An outage of a database raises, and so does an
    action in another's hands (outbox.InTurn), for they may be dead: the task comes again.
    """
    seconds = settings.TASK_STEP_SECONDS if seconds is None else seconds
    action = OperatorAction.objects.claim(action_id, timedelta(seconds=settings.Q_CLUSTER["timeout"]))
    if action is None:
        if OperatorAction.objects.open().filter(pk=action_id).exists():
            raise outbox.InTurn(f"Operator action {action_id} is in other hands")
        return {"skipped": "finished"}
    give_up_at = time.monotonic() + seconds
    try:
        while not (step := _step(action)).is_over:
            action = _note(action, step)
            if step.state == State.WAITING and not _wait_for_probe(action, give_up_at):
                return _release(action)
            if time.monotonic() > give_up_at:
                return _hand_on(action)
    except Exception as error:
        if is_outage(error):
            _release(action)
            raise
        logger.error("Operator action %d failed\n%s", action.pk, trace(error))
        step = Step(State.FAILED, outcome=REFUSED, detail=clean(told(error), 500))
    _note(action, step)
    return {"action": action.pk, "state": step.state.value}


def resume() -> dict[str, int]:
    """Promise anew what no entry promises: actions that wait for what they sent first, or were left standing.

    Run by a schedule each minute. An action whose own entry an operator let be is over instead.
    """
    OperatorAction.objects.let_be().update(state=State.STOPPED, outcome=LET_BE, looked_at=Now(), finished_at=Now())
    idle = list(OperatorAction.objects.to_resume(timedelta(seconds=20))[:100])
    with transaction.atomic(using="default"):
        step = f"look {clock.now():%Y-%m-%d %H:%M}"
        entries = [(action.promise_key(step), (action.pk,)) for action in idle]
        return {"resumed": outbox.enqueue_many(TASK, entries)}


def _step(action: OperatorAction) -> Step:
    return _STEPS[Kind(action.kind)](action)


def _replay_letter(action: OperatorAction) -> Step:
    letter = int(action.target["id"])
    _reopen(oversight.keys_of([letter]))
    return _once(oversight.replay_dead_letter(letter) is not None, SENT_AGAIN)


def _reopen(keys: Collection[uuid.UUID]) -> None:
    """Before their letters are sent again: who was given up is told after all. Twice is once."""
    Delivery.objects.reopen(keys)


def _purge_letter(action: OperatorAction) -> Step:
    return _once(oversight.purge_dead_letter(int(action.target["id"])), ALL_DONE)


def _once(touched: int, outcome: str) -> Step:
    return Step(State.DONE, int(touched), outcome if touched else NOTHING_LEFT)


def _purge_group(action: OperatorAction) -> Step:
    group = GroupKey.of(action.target).as_dict()
    return _batch(action, oversight.purge_dead_letters(group, action.up_to, BATCH), ALL_DONE)


def _batch(action: OperatorAction, touched: int, outcome: str) -> Step:
    if touched:
        return Step(State.RUNNING, touched)
    return Step(State.DONE, 0, outcome if action.touched else NOTHING_LEFT)


def _replay_group(action: OperatorAction) -> Step:
    """The oldest letter first; when its consumer has handled it the others, until one fails in the same way."""
    group = GroupKey.of(action.target)
    if action.probe is None:
        return _send_probe(action, group)
    if action.state == State.WAITING:
        return _look_after_probe(action, group)
    if oversight.last_dead_letter(group.as_dict()) > action.up_to:
        return Step(State.STOPPED, 0, FAILS_STILL)
    letters = oversight.oldest_dead_letters(group.as_dict(), action.up_to, BATCH)
    _reopen(oversight.keys_of(letters))
    return _batch(action, oversight.replay_dead_letters(letters), SENT_AGAIN)


def _send_probe(action: OperatorAction, group: GroupKey) -> Step:
    oldest = oversight.oldest_dead_letters(group.as_dict(), action.up_to, 1)
    _reopen(oversight.keys_of(oldest))
    sent = oversight.replay_dead_letter(oldest[0]) if oldest else None
    if sent is None:
        return Step(State.DONE, 0, NOTHING_LEFT)
    action.probe = {"event_id": sent[0], "txid": sent[1]}
    action.probed_at = clock.now()
    return Step(State.WAITING, 1)


def _look_after_probe(action: OperatorAction, group: GroupKey) -> Step:
    event_id, txid = action.probe["event_id"], action.probe["txid"]  # type: ignore[index]  # the caller has looked
    rows = oversight.readers_of(group.queue, event_id, [(None, txid)])
    reader = next((each for each in ways.readers(rows) if each.consumer == group.consumer), None)
    if reader and reader.state == "dead":
        return Step(State.STOPPED, 0, FAILED_AGAIN, clean(reader.reason, 500))
    if reader and reader.state == "retry":
        return Step(State.STOPPED, 0, WAITS_AGAIN)
    if reader and reader.state == "handled":
        return Step(State.RUNNING)
    if action.probed_at and clock.now() - action.probed_at > PROBE_PATIENCE:
        return Step(State.STOPPED, 0, NOT_TAKEN)
    return Step(State.WAITING)


def _retry_entry(action: OperatorAction) -> Step:
    return _once(OutboxEntry.objects.reopen(_entry(action)), LEFT_TO_SWEEP)


def _retry_entries(action: OperatorAction) -> Step:
    return _batch(action, OutboxEntry.objects.reopen(_oldest_given_up(action)), LEFT_TO_SWEEP)


def _settle_entry(action: OperatorAction) -> Step:
    return _once(OutboxEntry.objects.settle(_entry(action)), ALL_DONE)


def _settle_entries(action: OperatorAction) -> Step:
    return _batch(action, OutboxEntry.objects.settle(_oldest_given_up(action)), ALL_DONE)


def _entry(action: OperatorAction) -> QuerySet[OutboxEntry, Any]:
    return OutboxEntry.objects.filter(key=action.target["key"]).values("pk")


def _oldest_given_up(action: OperatorAction) -> QuerySet[OutboxEntry, Any]:
    return OutboxEntry.objects.given_up().filter(pk__lte=action.up_to).order_by("pk").values("pk")[:BATCH]


def _run_schedule(action: OperatorAction) -> Step:
    return _once(Schedule.objects.filter(name=action.target["name"]).update(next_run=Now()), LEFT_TO_CLUSTER)


_STEPS: Mapping[Kind, Callable[[OperatorAction], Step]] = {
    Kind.REPLAY_LETTER: _replay_letter,
    Kind.REPLAY_GROUP: _replay_group,
    Kind.PURGE_LETTER: _purge_letter,
    Kind.PURGE_GROUP: _purge_group,
    Kind.RETRY_ENTRY: _retry_entry,
    Kind.RETRY_ENTRIES: _retry_entries,
    Kind.SETTLE_ENTRY: _settle_entry,
    Kind.SETTLE_ENTRIES: _settle_entries,
    Kind.RUN_SCHEDULE: _run_schedule,
}


def _note(action: OperatorAction, step: Step) -> OperatorAction:
    """Write down what a step came to; the finished action is written once and never again."""
    OperatorAction.objects.open().filter(pk=action.pk).update(
        state=step.state,
        touched=F("touched") + step.touched,
        outcome=step.outcome,
        detail=step.detail,
        probe=action.probe,
        probed_at=action.probed_at,
        steps=F("steps") + 1,
        looked_at=Now(),
        moved_at=Now(),
        finished_at=Now() if step.is_over else None,
    )
    return OperatorAction.objects.get(pk=action.pk)


def _wait_for_probe(action: OperatorAction, give_up_at: float) -> bool:
    """Pause a moment; False when this worker has looked long enough."""
    pause = threading.Event()
    has_time = action.probed_at is not None and clock.now() - action.probed_at < timedelta(seconds=PROBE_LOOKS_SECONDS)
    return has_time and time.monotonic() < give_up_at and not pause.wait(LOOK_SECONDS)


def _release(action: OperatorAction) -> dict[str, Any]:
    OperatorAction.objects.open().filter(pk=action.pk).update(claimed_until=None, looked_at=Now())
    return {"action": action.pk, "state": action.state}


def _hand_on(action: OperatorAction) -> dict[str, Any]:
    """Let another task go on, so that none runs into its time-out."""
    with transaction.atomic(using="default"):
        outbox.enqueue(TASK, action.pk, key=action.promise_key(f"step {action.steps}"))
        return _release(action)

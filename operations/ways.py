"""The whole way of one event, from the outbox to the people it tells, asked of all three databases at once."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django_q.models import Task

from notifications.models import Delivery
from operations import records
from operations.facts.reading import Question, Reading, read, read_all
from operations.models import OperatorAction
from stega.models import OutboxEntry
from stega.pgque import oversight

LEEWAY = timedelta(minutes=5)
"""How far the clocks of the databases and workers may be apart, and two tickers' ticks wait for the same lock."""
RUNS_OPENED = 100
"""How many runs that did several entries are opened, to see whether one entry was among them."""
KEPT_AT_MOST = timedelta(days=2)
"""How far back the event tables are looked through for an event of unknown age."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What `default` knows."""

    entry: OutboxEntry | None
    deliveries: tuple[Delivery, ...]
    names: Mapping[str, str]
    actions: tuple[OperatorAction, ...]

    @property
    def since(self) -> datetime:
        """From when the event may be in the event tables."""
        if self.entry:
            return self.entry.created_at - LEEWAY
        return min((each.created_at for each in self.deliveries), default=timezone.now()) - KEPT_AT_MOST

    @property
    def ticket_id(self) -> int | None:
        return next((each.ticket_id for each in self.deliveries if each.ticket_id), None)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the entry's task."""

    is_success: bool
    started: datetime
    stopped: datetime
    others: int
    """How many entries it did beside this one."""

    @property
    def duration(self) -> timedelta:
        return self.stopped - self.started


@dataclass(frozen=True, slots=True)
class Reader:
    """How far one consumer is with one event."""

    consumer: str
    state: str
    """dead, retry, handled, in_hand or waiting."""
    deliveries: int
    retry_at: datetime | None
    letter: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event of the key. More than one: it was published again, or replayed."""

    queue: str
    id: int
    at: datetime
    type: str
    payload: str | None
    readers: tuple[Reader, ...]


@dataclass(frozen=True, slots=True)
class Log:
    """What `events` knows."""

    since: datetime
    """Events sent before were not looked at."""
    events: tuple[LoggedEvent, ...]
    letters: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Way:
    key: uuid.UUID
    promise: Reading[Promise]
    tasks: Reading[tuple[Run, ...]]
    log: Reading[Log]

    @property
    def is_unknown(self) -> bool:
        """Whether every database answered, and none knows the key."""
        promise, log = self.promise.value, self.log.value
        if promise is None or log is None or self.tasks.value is None:
            return False
        return not (promise.entry or promise.deliveries or self.tasks.value or log.events or log.letters)


def way(key: uuid.UUID) -> Way:
    promise = read(Question("default", lambda: _promise(key)))
    since = promise.value.since if promise.value else timezone.now() - KEPT_AT_MOST
    readings = read_all(
        {
            "tasks": Question("jobs", lambda: _tasks(key, promise.value.entry if promise.value else None)),
            "log": Question("events", lambda: _log(key, since)),
        }
    )
    return Way(key, promise, readings["tasks"], readings["log"])


def _promise(key: uuid.UUID) -> Promise:
    deliveries = tuple(records.deliveries_of(key))
    entry = OutboxEntry.objects.filter(key=key).first()
    asked = OperatorAction.objects.filter(target__key=str(key)).select_related("actor").order_by("pk")
    return Promise(entry, deliveries, records.names_of(deliveries), tuple(asked[:20]))


def _tasks(key: uuid.UUID, entry: OutboxEntry | None) -> tuple[Run, ...]:
    """The runs of the entry's task: django-q2 keeps them under the name that the outbox gave the task."""
    if entry is None:
        return ()
    alone = Task.objects.filter(name=f"{entry.task} {key}"[:100]).defer("args", "kwargs", "result")
    runs = {task.id: Run(task.success, task.started, task.stopped, 0) for task in alone[:50]}
    for task in _shared_tasks(entry):
        if str(key) in (task.args or ()):
            runs[task.id] = Run(task.success, task.started, task.stopped, len(task.args) - 1)
    return tuple(sorted(runs.values(), key=lambda run: run.started))


def _shared_tasks(entry: OutboxEntry) -> list[Task]:
    """Runs that may have done the entry with others: about when it was done or given up, and those that failed before.

    Their names tell how many entries they had, and not which.
    """
    over_at = entry.failed_at or entry.done_at
    shared = Task.objects.filter(name__startswith=f"{entry.task} of ").defer("kwargs", "result")
    failed = shared.filter(success=False, stopped__gte=entry.created_at - LEEWAY)
    if over_at is None:
        return list(failed.order_by("-stopped")[:RUNS_OPENED])
    failed = failed.filter(stopped__lt=over_at + LEEWAY)
    ended = shared.filter(stopped__gte=over_at - LEEWAY, stopped__lt=over_at + LEEWAY, started__lt=over_at + LEEWAY)
    return [*failed.order_by("-stopped")[:RUNS_OPENED], *_nearest(ended, over_at)]


def _nearest(runs: QuerySet[Task], moment: datetime) -> list[Task]:
    """A run ends after the entries that it did: those that ended next come first, then those that clocks set apart."""
    after = list(runs.filter(stopped__gte=moment).order_by("stopped")[:RUNS_OPENED])
    return after + list(runs.filter(stopped__lt=moment).order_by("-stopped")[:RUNS_OPENED])


def _log(key: uuid.UUID, since: datetime) -> Log:
    letters = tuple(oversight.dead_letters_by_key(str(key)))
    copies: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for row in oversight.events_by_key(str(key), since):
        copies.setdefault((row["queue_name"], row["ev_id"]), []).append(row)
    return Log(since, tuple(_event(queue, id, rows) for (queue, id), rows in copies.items()), letters)


def _event(queue: str, id: int, copies: list[Mapping[str, Any]]) -> LoggedEvent:
    rows = oversight.readers_of(queue, id, [(copy["ev_owner"], copy["txid"]) for copy in copies])
    first = copies[0]
    return LoggedEvent(queue, id, first["ev_time"], first["ev_type"], first["ev_data"], tuple(readers(rows)))


def readers(rows: Iterable[Mapping[str, Any]]) -> Iterable[Reader]:
    """Consumers and groups, each with what its members have in hand."""
    rows = list(rows)
    held = {row["consumer_name"].rpartition(".")[0] for row in rows if row["role"] == "coop_member" and row["is_held"]}
    for row in rows:
        if row["role"] != "coop_member":
            state = state_of(row, is_held=row["is_held"] or row["consumer_name"] in held)
            yield Reader(
                row["consumer_name"], state, row["copies"], row["retry_at"], row["dl_id"], row["dl_reason"] or ""
            )


def state_of(row: Mapping[str, Any], *, is_held: bool) -> str:
    """What one consumer has made of one event, from a row of `oversight.readers_of`."""
    if row["dl_id"]:
        return "dead"
    if row["retry_at"]:
        return "retry"
    if is_held:
        return "in_hand"
    return "handled" if row["has_passed"] else "waiting"

"""The whole way of one event, from the outbox to the people it tells, asked of all three databases at once."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django_q.models import Task

from notifications.models import Delivery
from operations import records
from operations.facts.reading import Question, Reading, read, read_all
from operations.models import OperatorAction
from stega.models import OutboxEntry
from stega.pgque import client

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
            return self.entry.created_at
        return min((each.created_at for each in self.deliveries), default=timezone.now()) - KEPT_AT_MOST

    @property
    def ticket_id(self) -> int | None:
        return next((each.ticket_id for each in self.deliveries if each.ticket_id), None)


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

    events: tuple[LoggedEvent, ...]
    letters: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Way:
    key: uuid.UUID
    promise: Reading[Promise]
    tasks: Reading[tuple[Task, ...]]
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


def _tasks(key: uuid.UUID, entry: OutboxEntry | None) -> tuple[Task, ...]:
    """The runs of the entry's task: django-q2 keeps them under the name that the outbox gave the task."""
    if entry is None:
        return ()
    runs = Task.objects.filter(name=f"{entry.task} {key}"[:100]).defer("args", "kwargs", "result")
    return tuple(sorted(runs[:50], key=lambda run: run.started))


def _log(key: uuid.UUID, since: datetime) -> Log:
    letters = tuple(client.dead_letters_by_key(str(key)))
    copies: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for row in client.events_by_key(str(key), since):
        copies.setdefault((row["queue_name"], row["ev_id"]), []).append(row)
    return Log(tuple(_event(queue, id, rows) for (queue, id), rows in copies.items()), letters)


def _event(queue: str, id: int, copies: list[Mapping[str, Any]]) -> LoggedEvent:
    rows = client.readers_of(queue, id, [(copy["ev_owner"], copy["txid"]) for copy in copies])
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
    """What one consumer has made of one event, from a row of `client.readers_of`."""
    if row["dl_id"]:
        return "dead"
    if row["retry_at"]:
        return "retry"
    if is_held:
        return "in_hand"
    return "handled" if row["has_passed"] else "waiting"

"""The rows of `default` that operators look through: outbox, ledger, actions; newest first, a page at a time.

A page begins after a row, never after a number of rows, and no query goes through more than SEARCHED rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Generic, TypeVar

from django.db.models import QuerySet
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from django_q.models import Task

from accounts.models import User
from notifications.models import Delivery, State
from notifications.notice import Channel
from operations.models import OperatorAction
from stega.models import OutboxEntry
from tickets import history
from tickets.models import TicketEvent

Row = TypeVar("Row")

PAGE_SIZE = 50
SEARCHED = 20_000
"""How many of the newest rows a filter without an index looks through."""
OUTBOX_STATES = {
    "open": pgettext_lazy("outbox entries", "open"),
    "given_up": pgettext_lazy("outbox entries", "given up"),
    "done": pgettext_lazy("outbox entries", "done"),
    "all": _("all"),
}
DELIVERY_STATES = {"": _("all"), **dict(State.choices)}


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    rows: list[Row]
    next: str
    """Where the next page begins; empty on the last one."""
    is_partial: bool = False
    """Whether only the newest SEARCHED rows were looked through."""


def page_of(rows: Iterable[Row], place: Callable[[Row], str], *, is_partial: bool = False) -> Page[Row]:
    """Of PAGE_SIZE rows and one more, which only tells that there is a next page."""
    found = list(rows)
    shown = found[:PAGE_SIZE]
    return Page(shown, place(shown[-1]) if len(found) > PAGE_SIZE else "", is_partial)


def outbox(state: str, key: str, before: str) -> Page[OutboxEntry]:
    """Entries of a state (one of OUTBOX_STATES), or the one with the key."""
    if key:
        wanted = as_uuid(key)
        return Page(list(OutboxEntry.objects.filter(key=wanted)) if wanted else [], "")
    rows, moment = _OUTBOX[state]()
    if moment == "pk":
        number = as_number(before)
        rows = rows.filter(pk__lt=number) if number else rows
        return page_of(rows.order_by("-pk")[: PAGE_SIZE + 1], lambda row: str(row.pk))
    rows = _older(rows, moment, before).order_by(f"-{moment}", "-pk")
    return page_of(rows[: PAGE_SIZE + 1], lambda row: _place(getattr(row, moment), row.pk))


_OUTBOX: dict[str, Callable[[], tuple[QuerySet[OutboxEntry], str]]] = {
    "open": lambda: (OutboxEntry.objects.open(), "created_at"),
    "given_up": lambda: (OutboxEntry.objects.given_up(), "failed_at"),
    "done": lambda: (OutboxEntry.objects.filter(done_at__isnull=False), "done_at"),
    "all": lambda: (OutboxEntry.objects.all(), "pk"),
}


def deliveries(query: str, state: str, before: str) -> Page[Delivery]:
    """The ledger, or what matches a key, a ticket's number, a recipient (user:5) or a mail address."""
    rows = _older(matching(Delivery.objects.all(), query), "created_at", before).order_by("-created_at", "-pk")
    if state not in State.values:
        return page_of(rows[: PAGE_SIZE + 1], _delivery_place)
    if state in (State.PENDING, State.SENDING) and not query:
        return page_of(_newest_open(rows.filter(state=state)), _delivery_place)
    if query or state not in (State.SENT, State.SKIPPED):
        found = rows.filter(state=state)
        if state in (State.FAILED, State.GIVEN_UP):
            found = found.filter(state__in=[State.FAILED, State.GIVEN_UP])
        return page_of(found[: PAGE_SIZE + 1], _delivery_place)
    last = rows.values_list("created_at", flat=True)[SEARCHED : SEARCHED + 1].first()
    found = rows.filter(state=state, created_at__gte=last) if last else rows.filter(state=state)
    return page_of(found[: PAGE_SIZE + 1], _delivery_place, is_partial=last is not None)


def _newest_open(rows: QuerySet[Delivery]) -> list[Delivery]:
    """Of each channel the newest: the index on what is open begins with the channel."""
    of_channels = [rows.filter(channel=channel)[: PAGE_SIZE + 1] for channel in Channel]
    return sorted(chain(*of_channels), key=lambda row: (row.created_at, row.pk), reverse=True)[: PAGE_SIZE + 1]


def _delivery_place(row: Delivery) -> str:
    return _place(row.created_at, row.pk)


def matching(rows: QuerySet[Delivery], query: str) -> QuerySet[Delivery]:
    """Each form of the query has an index: nothing is searched through."""
    query = query.strip()
    if not query:
        return rows
    if key := as_uuid(query):
        return rows.filter(event_key=key)
    if (number := as_number(query.removeprefix("#"))) is not None:
        return rows.filter(ticket_id=number)
    if not is_storable(query):
        return rows.none()
    if "@" in query:
        people = User.objects.filter(email__iexact=query).values_list("pk", flat=True)[:100]
        return rows.filter(recipient__in=[f"user:{pk}" for pk in people])
    return rows.filter(recipient=query)


def deliveries_of(key: uuid.UUID) -> list[Delivery]:
    return list(Delivery.objects.filter(event_key=key).order_by("pk")[:200])


def names_of(rows: Iterable[Delivery]) -> dict[str, str]:
    """Recipient -> the person's name, for those that are people."""
    ids = {row.recipient.removeprefix("user:") for row in rows if row.channel == Channel.EMAIL}
    people = User.objects.filter(pk__in=[id for id in ids if id.isdecimal()])
    return {f"user:{user.pk}": str(user) for user in people}


def actions(before: str) -> Page[OperatorAction]:
    rows = OperatorAction.objects.select_related("actor").order_by("-pk")
    number = as_number(before)
    rows = rows if number is None else rows.filter(pk__lt=number)
    return page_of(rows[: PAGE_SIZE + 1], lambda row: str(row.pk))


@dataclass(frozen=True, slots=True)
class Told:
    """A line of a ticket's history, the event it is published as, and what became of that so far."""

    line: TicketEvent
    event_type: str
    key: uuid.UUID
    entry: OutboxEntry | None
    deliveries: tuple[Delivery, ...]


LINES_SHOWN = 100


def told_of_ticket(ticket_id: int) -> list[Told]:
    """What a ticket's history was published as, newest first. The keys follow from the lines: nothing is searched."""
    lines = TicketEvent.objects.filter(ticket_id=ticket_id).select_related("actor").order_by("-pk")[:LINES_SHOWN]
    published = [(line, history.published_as(line.pk, ticket_id, line.type, line.payload)) for line in lines]
    keys = [event[1] for _line, event in published if event]
    entries = {entry.key: entry for entry in OutboxEntry.objects.filter(key__in=keys)}
    told: dict[uuid.UUID, list[Delivery]] = {}
    for delivery in Delivery.objects.filter(event_key__in=keys).order_by("pk")[:1_000]:
        told.setdefault(delivery.event_key, []).append(delivery)
    return [
        Told(line, event[0], event[1], entries.get(event[1]), tuple(told.get(event[1], ())))
        for line, event in published
        if event
    ]


FAILURES_SHOWN = 30


def failures() -> list[Task]:
    """The newest runs of tasks that failed, without their arguments."""
    newest = Task.objects.filter(success=False).order_by("-stopped").defer("args", "kwargs")
    return list(newest[:FAILURES_SHOWN])


def as_uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text.strip())
    except ValueError:
        return None


LARGEST = 2**63 - 1
"""The highest number that a row can have."""


def as_number(text: str) -> int | None:
    """The number of a row, of digits alone: nothing else that int() takes."""
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        return None
    number = int(text)
    return number if number <= LARGEST else None


def is_storable(text: str) -> bool:
    """Whether a database could hold the text at all: no NUL, no half of a surrogate pair."""
    return not any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in text)


def _place(moment: datetime | None, pk: Any) -> str:
    return f"{moment.isoformat() if moment else ''}_{pk}"


def _older(rows: QuerySet[Any], moment: str, before: str) -> QuerySet[Any]:
    """The rows after a place in the order of moment and number; an unreadable place is the beginning."""
    text, _, digits = before.partition("_")
    number = as_number(digits)
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    if at is None or number is None:
        return rows
    return rows.filter(**{f"{moment}__lte": at}).exclude(**{moment: at, "pk__gte": number})

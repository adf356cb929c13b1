"""The delivery ledger and the circuits of the lines out of Stega."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connections
from django.db.models import Count, Min, Q

from notifications.channels.email import REFUSED
from notifications.models import Circuit, Delivery, State
from notifications.notice import Channel
from operations.facts.reading import COUNT_LIMIT, Question
from stega.database import clock

WINDOW = timedelta(hours=1)
LINES = 100
"""How many lines that failed are told."""
DAY = timedelta(days=1)
NEWEST = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many of the last hour's deliveries (the newest COUNT_LIMIT of them) by one channel are in one state."""

    channel: str
    state: str
    deliveries: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is still to be told by one channel; the count ends at COUNT_LIMIT."""

    channel: str
    deliveries: int
    oldest: timedelta | None


@dataclass(frozen=True, slots=True)
class Line:
    """A mail server or Slack webhook that has failed; `channel` is email or slack."""

    name: str
    """Of a webhook with the product that posts by it: its address is a secret."""
    channel: str
    failures: int
    reason: str
    """A msgid."""
    retry_at: datetime | None
    """Nothing is sent before; None while the line is in use."""


@dataclass(frozen=True, slots=True)
class PutOff:
    """The newest mails as far as the server, which works, refused each of them for now."""

    people: int
    oldest: timedelta


@dataclass(frozen=True, slots=True)
class Ledger:
    """`put_off` is None when the newest mail that was tried went out, or failed for good."""

    at: datetime
    outcomes: tuple[Outcome, ...]
    waiting: tuple[Waiting, ...]
    lines: tuple[Line, ...]
    put_off: PutOff | None = None


def question() -> Question[Ledger]:
    return Question("default", _ask)


def lines_question() -> Question[tuple[Line, ...]]:
    return Question("default", _lines)


def _ask() -> Ledger:
    now = clock.now("default")
    return Ledger(now, _outcomes(now), tuple(_waiting(now, channel) for channel in Channel), _lines(), _put_off(now))


def _outcomes(now: datetime) -> tuple[Outcome, ...]:
    newest = Delivery.objects.filter(created_at__gt=now - WINDOW).order_by("-created_at")[:COUNT_LIMIT]
    kinds = {f"{channel}_{state}": (channel.value, state.value) for channel in Channel for state in State}
    counted = newest.aggregate(
        **{name: Count("pk", filter=Q(channel=channel, state=state)) for name, (channel, state) in kinds.items()}
    )
    return tuple(Outcome(*kind, counted[name]) for name, kind in kinds.items())


def _waiting(now: datetime, channel: Channel) -> Waiting:
    oldest = Delivery.objects.open().filter(channel=channel).order_by("created_at")[:COUNT_LIMIT]
    figures = oldest.aggregate(count=Count("pk"), first=Min("created_at"))
    return Waiting(channel.value, figures["count"], now - figures["first"] if figures["first"] else None)


def _put_off(now: datetime) -> PutOff | None:
    """Of the last day's mails, the newest NEWEST."""
    people: set[str] = set()
    first = now
    tried = Delivery.objects.filter(channel=Channel.EMAIL, created_at__gt=now - DAY, attempts__gt=0)
    rows = tried.order_by("-created_at").values_list("state", "reason", "recipient", "created_at")[:NEWEST]
    for state, reason, recipient, created_at in rows:
        if state in (State.SENT, State.FAILED):
            break
        if state == State.PENDING and reason == REFUSED:
            people.add(recipient)
            first = created_at
    return PutOff(len(people), now - first) if people else None


def _lines() -> tuple[Line, ...]:
    """Those in use: by a webhook that no product has any more nothing is sent, so it is never told to work again."""
    failed = list(Circuit.objects.filter(failures__gt=0).order_by("line")[:LINES])
    slack = _slack_names([circuit.line for circuit in failed])
    names = {circuit.line: circuit.line for circuit in failed if circuit.line.startswith("smtp ")} | slack
    return tuple(
        Line(
            names[circuit.line],
            Channel.SLACK.value if circuit.line in slack else Channel.EMAIL.value,
            circuit.failures,
            circuit.reason,
            circuit.retry_at,
        )
        for circuit in failed
        if circuit.line in names
    )


def _slack_names(lines: list[str]) -> dict[str, str]:
    """Line -> the first product that posts by it, and how many others do: no two lines have a product in common."""
    statement = """
        select line, (array_agg(product order by product))[1], count(*) - 1 from operations_slackline
        where line = any(%s) group by line
    """
    with connections["default"].cursor() as cursor:
        cursor.execute(statement, [lines])
        rows = cursor.fetchall()
    return {line: f"slack {product} +{others}" if others else f"slack {product}" for line, product, others in rows}

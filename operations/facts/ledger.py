"""The delivery ledger and the circuits of the lines out of Stega."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, Q

from notifications.models import Circuit, Delivery, State
from notifications.notice import Channel
from operations.facts.reading import COUNT_LIMIT, Question
from stega.database import clock

WINDOW = timedelta(hours=1)


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
    """A mail server or Slack webhook that has failed; `channel` is email or slack, `name` tells no secret."""

    name: str
    channel: str
    failures: int
    reason: str
    """A msgid."""
    retry_at: datetime | None
    """Nothing is sent before; None while the line is in use."""


@dataclass(frozen=True, slots=True)
class Ledger:
    at: datetime
    outcomes: tuple[Outcome, ...]
    waiting: tuple[Waiting, ...]
    lines: tuple[Line, ...]


def question() -> Question[Ledger]:
    return Question("default", _ask)


def _ask() -> Ledger:
    now = clock.now("default")
    return Ledger(now, _outcomes(now), tuple(_waiting(now, channel) for channel in Channel), _lines())


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


def _lines() -> tuple[Line, ...]:
    failed = Circuit.objects.filter(failures__gt=0).order_by("line")[:100]
    return tuple(
        Line(
            circuit.line,
            Channel.EMAIL.value if circuit.line.startswith("smtp ") else Channel.SLACK.value,
            circuit.failures,
            circuit.reason,
            circuit.retry_at,
        )
        for circuit in failed
    )

"""The delivery ledger and the circuits of the lines out of Stega."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min

from notifications.models import Channel, Circuit, Delivery, State
from operations.facts.reading import COUNT_LIMIT, Question, clock

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
    now = clock("default")
    return Ledger(now, _outcomes(now), tuple(_waiting(now, channel) for channel in Channel), _lines())


def _outcomes(now: datetime) -> tuple[Outcome, ...]:
    newest = Delivery.objects.filter(created_at__gt=now - WINDOW).order_by("-created_at")[:COUNT_LIMIT]
    grouped = (
        Delivery.objects.filter(pk__in=newest.values("pk"))
        .order_by("channel", "state")
        .values_list("channel", "state")
        .annotate(Count("pk"))
    )
    counted = {(channel, state): count for channel, state, count in grouped}
    return tuple(
        Outcome(channel.value, state.value, counted.get((channel.value, state.value), 0))
        for channel in Channel
        for state in State
    )


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

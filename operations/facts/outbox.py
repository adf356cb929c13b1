"""The outbox: what is promised and not done."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from operations.facts.reading import COUNT_LIMIT, Question
from stega.database import clock
from stega.models import OutboxEntry


@dataclass(frozen=True, slots=True)
class Outbox:
    """Counts end at COUNT_LIMIT. An entry ages from when it was written, or let run again.

    `failing` are the open ones whose task failed by its own fault and comes again: they end by themselves.
    """

    at: datetime
    open: int
    unrelayed: int
    oldest_open: timedelta | None
    oldest_unrelayed: timedelta | None
    failing: int
    oldest_untried: timedelta | None
    """Of those that are not failing."""
    given_up: int
    last_given_up_at: datetime | None


def question() -> Question[Outbox]:
    return Question("default", _ask)


def _ask() -> Outbox:
    now = clock.now("default")
    entries = OutboxEntry.objects.open()
    unrelayed = entries.filter(relayed_at=None)
    given_up = OutboxEntry.objects.given_up()
    return Outbox(
        at=now,
        open=entries[:COUNT_LIMIT].count(),
        unrelayed=unrelayed[:COUNT_LIMIT].count(),
        oldest_open=_age(now, entries.oldest()),
        oldest_unrelayed=_age(now, unrelayed.oldest()),
        failing=entries.filter(attempts__gt=0)[:COUNT_LIMIT].count(),
        oldest_untried=_age(now, entries.filter(attempts=0).oldest()),
        given_up=given_up[:COUNT_LIMIT].count(),
        last_given_up_at=given_up.order_by("-failed_at").values_list("failed_at", flat=True).first(),
    )


def _age(now: datetime, moment: datetime | None) -> timedelta | None:
    return now - moment if moment else None

"""What operators asked for and is not over."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min
from django.db.models.functions import Coalesce

from operations.facts.reading import COUNT_LIMIT, Question
from operations.models import OperatorAction
from stega.database import clock


@dataclass(frozen=True, slots=True)
class Actions:
    """The count ends at COUNT_LIMIT."""

    at: datetime
    open: int
    longest_still: timedelta | None
    """How long nothing has come of one: no step of its work was done. None when none is open."""


def question() -> Question[Actions]:
    return Question("default", _ask)


def _ask() -> Actions:
    now = clock.now("default")
    open = OperatorAction.objects.open()[:COUNT_LIMIT]
    figures = open.aggregate(count=Count("pk"), first=Min(Coalesce("moved_at", "requested_at")))
    return Actions(now, figures["count"], now - figures["first"] if figures["first"] else None)

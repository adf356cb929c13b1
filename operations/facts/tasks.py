"""django-q2: what waits, what failed, when schedules run, and which clusters are there."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django_q.models import OrmQ, Schedule, Task

from operations.facts.reading import COUNT_LIMIT, Question
from operations.facts.sessions import Session, others_are_hidden, sessions
from stega.database import clock
from stega.database.pooling import is_pooled

WINDOW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Scheduled:
    name: str
    function: str
    next_run: datetime | None


@dataclass(frozen=True, slots=True)
class Tasks:
    """Counts end at COUNT_LIMIT; `succeeded` and `failed` are those of the last hour."""

    at: datetime
    due: int
    leased: int
    """In a worker's hands, or waiting for their next try."""
    oldest_due: timedelta | None
    succeeded: int
    failed: int
    schedules: tuple[Scheduled, ...]
    clusters: tuple[Session, ...] | None
    """The main processes of the clusters; a living one speaks to its queue each second. None: they are hidden."""


def question() -> Question[Tasks]:
    return Question("jobs", _ask)


def _ask() -> Tasks:
    now = clock.now("jobs")
    queue = OrmQ.objects.filter(key=settings.Q_CLUSTER["name"])
    oldest = queue.filter(lock__lte=now).order_by("lock").values_list("lock", flat=True).first()
    finished = Task.objects.filter(stopped__gt=now - WINDOW).order_by()
    return Tasks(
        at=now,
        due=queue.filter(lock__lte=now)[:COUNT_LIMIT].count(),
        leased=queue.filter(lock__gt=now)[:COUNT_LIMIT].count(),
        oldest_due=now - oldest if oldest else None,
        succeeded=finished.filter(success=True)[:COUNT_LIMIT].count(),
        failed=finished.filter(success=False)[:COUNT_LIMIT].count(),
        schedules=tuple(
            Scheduled(*row) for row in Schedule.objects.order_by("name").values_list("name", "func", "next_run")
        ),
        clusters=clusters(),
    )


def clusters() -> tuple[Session, ...] | None:
    if is_pooled("jobs") or others_are_hidden("jobs"):
        return None
    return tuple(each for each in sessions("jobs") if each.application == "qcluster")

"""Clusters of task workers and their schedules."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.utils.translation import gettext as _

from operations.facts.tasks import Tasks
from operations.problems import words
from operations.problems.words import Problem, seconds
from stega.tasks.schedules import SCHEDULES

_COMMAND = "python manage.py qcluster"


def faults(tasks: Tasks) -> Iterator[Problem]:
    patience = timedelta(seconds=settings.CLUSTER_STUCK_SECONDS)
    if tasks.clusters == ():
        yield words.CLUSTER_DEAD.of("qcluster", command=_COMMAND)
    elif tasks.oldest_due and tasks.oldest_due > patience:
        age = seconds(tasks.oldest_due)
        yield words.TASKS_OVERDUE.of("qcluster", number=tasks.due, age=age, command=_COMMAND)
    elif (silence := _silence(tasks)) is not None and silence > patience:
        yield words.CLUSTERS_SILENT.of("qcluster", age=seconds(silence), command=_COMMAND)
    yield from _of_schedules({each.name: each.next_run for each in tasks.schedules}, tasks.at)


def _silence(tasks: Tasks) -> timedelta | None:
    """How long no cluster has asked for tasks; None where one cannot tell."""
    silences = [each.silent_for for each in tasks.clusters or ()]
    known = [silence for silence in silences if silence is not None]
    return min(known) if known and len(known) == len(silences) else None


def _of_schedules(next_runs: dict[str, datetime | None], now: datetime) -> Iterator[Problem]:
    for name in SCHEDULES:
        next_run = next_runs.get(name)
        if name not in next_runs:
            yield words.SCHEDULE_MISSING.of(name, name=_(name), command="python manage.py schedules")
        elif next_run and now - next_run > timedelta(seconds=settings.SCHEDULE_LATE_SECONDS):
            yield words.SCHEDULE_LATE.of(name, name=_(name), age=seconds(now - next_run), command=_COMMAND)

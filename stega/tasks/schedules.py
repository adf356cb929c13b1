"""The periodic work: which task, how often."""

from typing import Any

from django.db import connections, transaction
from django.utils.translation import gettext_noop
from django_q.models import Schedule

from stega.database import clock
from stega.database.routers import home
from stega.installation.preparation import require_prepared

EACH_MINUTE = {"schedule_type": Schedule.MINUTES, "minutes": 1, "cron": None}
EACH_HOUR = {"schedule_type": Schedule.CRON, "minutes": None, "cron": "30 * * * *"}

SCHEDULES: dict[str, dict[str, Any]] = {
    gettext_noop("outbox sweep"): {"func": "stega.outbox.sweep", **EACH_MINUTE},
    gettext_noop("SLA scan"): {"func": "tickets.tasks.check_sla_breaches", **EACH_MINUTE},
    gettext_noop("weekly activity report"): {
        "func": "tickets.tasks.generate_activity_report",
        "schedule_type": Schedule.CRON,
        "minutes": None,
        "cron": "0 8 * * 1",  # Mondays 08:00 in settings.TIME_ZONE
    },
    gettext_noop("operator actions"): {"func": "operations.tasks.resume_operator_actions", **EACH_MINUTE},
    gettext_noop("chart samples"): {"func": "operations.tasks.take_samples", **EACH_MINUTE},
    gettext_noop("outbox pruning"): {"func": "stega.outbox.prune", **EACH_HOUR},
    gettext_noop("result pruning"): {"func": "stega.results.prune", **EACH_HOUR},
    gettext_noop("ledger pruning"): {"func": "notifications.tasks.prune_ledger", **EACH_HOUR},
    gettext_noop("session pruning"): {"func": "accounts.tasks.prune_sessions", **EACH_HOUR},
    gettext_noop("sample pruning"): {"func": "operations.tasks.prune_samples", **EACH_HOUR},
}
"""By name; the console shows the name in the language of its reader."""


def install() -> list[str]:
    """Create missing schedules and correct changed ones, in one transaction on `jobs`; returns all names.

    A schedule that is as it should be keeps its next run, so that a deployment never runs a period twice; unless that
    run is further away than any could be, as a host whose clock was ahead leaves it. Several installers wait for each
    other on a lock.
    """
    alias = home("django_q")
    require_prepared(alias)
    with transaction.atomic(using=alias):
        with connections[alias].cursor() as cursor:
            cursor.execute("select pg_advisory_xact_lock(hashtext('stega schedules'))")
        for name, wanted in SCHEDULES.items():
            _install(name, wanted)
    return list(SCHEDULES)


def bring_back() -> int:
    """Let no schedule rest beyond its period because a host's clock was ahead for a while; how many did.

    Cheap, safe to repeat and for any number of clusters at once.
    """
    brought_back = 0
    now = clock.now(home("django_q"))
    for schedule in Schedule.objects.filter(name__in=SCHEDULES):
        latest = schedule.calculate_next_run(now)
        if schedule.next_run > latest:
            same = Schedule.objects.filter(pk=schedule.pk, next_run=schedule.next_run)
            brought_back += same.update(next_run=latest)
    return brought_back


def _install(name: str, wanted: dict[str, Any]) -> None:
    schedule = Schedule.objects.filter(name=name).first() or Schedule(name=name, repeats=-1)
    as_wanted = schedule.pk and all(getattr(schedule, attribute) == value for attribute, value in wanted.items())
    for attribute, value in wanted.items():
        setattr(schedule, attribute, value)
    now = clock.now(home("django_q"))
    latest = schedule.calculate_next_run(now)
    if as_wanted and schedule.next_run <= latest:
        return
    schedule.next_run = latest if schedule.cron else now
    schedule.save()

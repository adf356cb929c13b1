"""stega/tasks/schedules.py: the periodic tasks exist once, whoever installs them and how often."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connections
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q import scheduler
from django_q.models import OrmQ, Schedule

from stega.tasks import schedules
from tests.support.together import at_once

pytestmark = pytest.mark.django_db(databases=["default", "jobs"], transaction=True)


def test_every_schedule_names_a_function_that_exists():
    schedules.install()

    for schedule in Schedule.objects.all():
        assert callable(import_string(schedule.func))


def test_installing_again_keeps_the_next_run():
    schedules.install()
    Schedule.objects.update(next_run=datetime(2020, 1, 1, tzinfo=UTC))

    schedules.install()

    assert Schedule.objects.count() == len(schedules.SCHEDULES)
    assert set(Schedule.objects.values_list("next_run", flat=True)) == {datetime(2020, 1, 1, tzinfo=UTC)}


def test_a_next_run_that_a_clock_ahead_has_left_is_brought_back():
    schedules.install()
    Schedule.objects.update(next_run=datetime(2099, 1, 1, tzinfo=UTC))

    schedules.install()

    assert not Schedule.objects.filter(next_run__gt=timezone.now() + timedelta(days=8)).exists()
    assert Schedule.objects.get(name="SLA scan").next_run <= timezone.now()


def test_a_changed_schedule_is_corrected():
    schedules.install()
    Schedule.objects.filter(name="SLA scan").update(minutes=15, func="somewhere.else")

    schedules.install()

    scan = Schedule.objects.get(name="SLA scan")
    assert (scan.minutes, scan.func) == (1, "tickets.tasks.check_sla_breaches")


def test_two_installers_at_once_create_each_schedule_once():
    at_once(lambda _: schedules.install(), range(2))

    assert sorted(Schedule.objects.values_list("name", flat=True)) == sorted(schedules.SCHEDULES)


def test_the_weekly_report_runs_on_mondays_at_eight_local_time(monkeypatch):
    monkeypatch.setattr("django_q.conf.Conf.TIME_ZONE", "Europe/Berlin")  # settings.TIME_ZONE, read at import

    schedules.install()

    next_run = Schedule.objects.get(name="weekly activity report").next_run
    assert next_run.astimezone(ZoneInfo("Europe/Berlin")).strftime("%a %H:%M") == "Mon 08:00"


def run_schedules():
    scheduler.scheduler()
    connections.close_all()


def test_two_clusters_at_once_and_again_run_a_due_period_once():
    schedules.install()
    Schedule.objects.exclude(name="SLA scan").delete()
    at_once(lambda _: run_schedules(), range(2))

    run_schedules()

    (package,) = OrmQ.objects.all()
    assert package.func() == "tickets.tasks.check_sla_breaches"
    assert Schedule.objects.get().next_run > timezone.now()


def test_a_cluster_that_was_off_for_hours_runs_a_missed_period_once():
    schedules.install()
    Schedule.objects.exclude(name="SLA scan").delete()
    Schedule.objects.update(next_run=timezone.now() - timedelta(hours=3))

    for _ in range(3):
        run_schedules()

    assert OrmQ.objects.count() == 1


@pytest.mark.parametrize("ahead", [timedelta(days=1), timedelta(days=-1)])
def test_schedules_go_on_after_the_clock_of_a_host_has_jumped(monkeypatch, ahead):
    schedules.install()
    now = timezone.now
    with monkeypatch.context() as jumped:
        jumped.setattr("django.utils.timezone.now", lambda: now() + ahead)
        run_schedules()

    schedules.bring_back()

    assert Schedule.objects.get(name="outbox sweep").next_run <= now() + timedelta(minutes=1)
    assert Schedule.objects.get(name="weekly activity report").next_run <= now() + timedelta(days=7)


def test_a_schedule_that_is_as_it_should_be_is_not_brought_back():
    schedules.install()
    before = set(Schedule.objects.values_list("name", "next_run"))

    assert schedules.bring_back() == 0
    assert set(Schedule.objects.values_list("name", "next_run")) == before

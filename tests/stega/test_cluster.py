"""stega/cluster.py, as far as it needs no process: the rest is in tests/processes/test_health.py."""

from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import Schedule

from stega import schedules
from stega.cluster import SCHEDULES_SECONDS, Cluster

pytestmark = pytest.mark.django_db(databases=["default", "jobs"], transaction=True)


@pytest.mark.parametrize(("seconds_ago", "brought_back"), [(SCHEDULES_SECONDS + 1, True), (0, False)])
def test_a_cluster_looks_after_the_schedules_once_in_a_while(monkeypatch, seconds_ago, brought_back):
    monkeypatch.setattr("signal.signal", lambda *args: None)
    schedules.install()
    Schedule.objects.update(next_run=timezone.now() + timedelta(days=365))
    cluster = Cluster()
    cluster.schedules_seen_at -= seconds_ago

    assert cluster._reaches_its_queue()

    assert Schedule.objects.filter(next_run__gt=timezone.now() + timedelta(days=8)).exists() is not brought_back

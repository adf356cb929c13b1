"""stega/results.py: results of tasks do not pile up."""

from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import Task

from stega import results

pytestmark = pytest.mark.django_db(databases=["default", "jobs"])


@pytest.mark.parametrize("success", [True, False])
def test_old_results_are_deleted_and_young_ones_stay(success):
    for days in (13, 15):
        stopped = timezone.now() - timedelta(days=days)
        Task.objects.create(id=f"{days}", name=f"{days}", func="f", started=stopped, stopped=stopped, success=success)

    results.prune()

    assert [task.name for task in Task.objects.all()] == ["13"]

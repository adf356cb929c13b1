"""Each test begins on clean databases, whichever tests ran before it in whatever order."""

import pytest
from django.apps import apps

from stega.pgque import client
from tests.support.processes import ROOT
from tests.support.scheduling import TOGETHER, Scheduler

BELONGS_TO_DJANGO = {"contenttypes", "auth"}


@pytest.mark.django_db(databases=["default", "jobs", "events"])
@pytest.mark.parametrize("number", range(5))
def test_no_row_of_another_test_is_left(number):
    models = [model for model in apps.get_models() if model._meta.app_label not in BELONGS_TO_DJANGO]

    left = {model._meta.label: model.objects.count() for model in models if model._meta.managed}

    assert not {label: count for label, count in left.items() if count}


@pytest.mark.django_db(databases=["events"])
@pytest.mark.parametrize("number", range(5))
def test_no_queue_of_another_test_is_left(number, settings):
    assert {row["queue_name"] for row in client.queue_info()} <= {settings.PGQUE_QUEUE}


@pytest.mark.parametrize("path", sorted(TOGETHER))
def test_a_file_whose_tests_share_what_takes_long_to_make_stays_with_one_worker(path):
    scope_of = Scheduler.__new__(Scheduler)._split_scope

    assert (ROOT / path).exists()
    assert scope_of(f"{path}::test_one[a::b]") == scope_of(f"{path}::test_two") != scope_of("tests/test_guide.py::test")

"""stega/database/routers.py: every app has one home."""

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connections

from stega.database.routers import HomeRouter, home

ALIASES = {"default", "jobs", "events"}


def test_every_model_is_read_written_and_migrated_at_one_home_only():
    router = HomeRouter()

    for model in apps.get_models(include_auto_created=True):
        label = model._meta.app_label
        assert router.db_for_read(model) == router.db_for_write(model) == home(label)
        assert {alias for alias in ALIASES if router.allow_migrate(alias, label)} == {home(label)}


def test_an_addition_to_another_apps_tables_runs_where_these_live():
    router = HomeRouter()

    assert {alias for alias in ALIASES if router.allow_migrate(alias, "operations", of_app="django_q")} == {"jobs"}


def test_results_and_schedules_live_with_the_queue():
    assert {home(model._meta.app_label) for model in apps.get_app_config("django_q").get_models()} == {"jobs"}


@pytest.mark.django_db(databases=["default", "jobs", "events"])
def test_each_database_holds_the_tables_of_its_own_apps_and_no_others():
    tables = {alias: set(connections[alias].introspection.table_names()) - {"django_migrations"} for alias in ALIASES}

    assert "django_migrations" not in connections["events"].introspection.table_names()
    assert {"django_q_ormq", "django_q_task", "django_q_schedule"} <= tables["jobs"]
    assert all(name.startswith("django_q_") for name in tables["jobs"])
    assert "stega_outboxentry" in tables["default"]
    assert not any(name.startswith("django_q_") for name in tables["default"])
    assert tables["events"] == set()


@pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)
@pytest.mark.parametrize("alias", ["events", "jobs", "default"])
def test_migrating_again_in_any_order_changes_nothing(alias, capsys):
    before = {each: set(connections[each].introspection.table_names()) for each in ALIASES}

    call_command("migrate", database=alias, verbosity=0)

    assert {each: set(connections[each].introspection.table_names()) for each in ALIASES} == before

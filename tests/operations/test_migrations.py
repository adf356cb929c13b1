"""operations/migrations: what is in the databases that have been running."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.db import connection

pytestmark = pytest.mark.django_db


def test_the_permission_to_operate_takes_its_new_name():
    migration = import_module("operations.migrations.0008_one_word_for_deleting")
    there = Permission.objects.filter(codename="operate_console")
    there.update(name="Can replay, purge and retry in the console")

    migration.rename(apps, SimpleNamespace(connection=connection))

    assert [each.name for each in there.all()] == ["Can replay, delete and retry in the console"]

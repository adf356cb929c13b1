"""stega/installation/preparation.py: what a process looks at before it starts."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from stega.database.pooling import is_pooled
from stega.installation.preparation import require_prepared

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


@pytest.fixture
def pooled(monkeypatch):
    monkeypatch.setattr("stega.installation.preparation.is_pooled", lambda alias: alias == "events")


def test_a_pooler_that_settings_do_not_name_is_refused_with_the_settings_to_set(pooled, queue):
    with pytest.raises(ImproperlyConfigured, match=r"EVENTS_LISTEN_DATABASE_URL.* EVENTS_POOLED=1"):
        require_prepared("events")


def test_a_pooler_that_settings_name_is_none_of_anybodys_business(pooled, queue, settings):
    settings.EVENTS_POOLED = True

    require_prepared("events")


@pytest.mark.parametrize("alias", ["default", "jobs", "events"])
def test_a_server_itself_is_no_pooler(alias, queue):
    require_prepared(alias)

    assert not is_pooled(alias)


def test_whoever_answers_under_another_number_than_it_told_is_behind_a_pooler(monkeypatch):
    connection = connections["events"]
    connection.ensure_connection()
    monkeypatch.setattr("psycopg.ConnectionInfo.backend_pid", 0)

    assert is_pooled("events")

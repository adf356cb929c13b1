"""stega/database/plans.py: the plan of what is asked again is kept, unless a pooler would mix it up."""

import psycopg
import pytest
from django.db import DataError, connections

from stega.database import plans

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


@pytest.fixture
def kept_plans():
    """Ask a session that begins now the same ten times; how many plans it keeps then."""

    def ask():
        connections["default"].close()
        with plans.cursor("default") as cursor:
            for number in range(10):
                cursor.execute("select %s::int", [number])
            cursor.execute("select count(*)::int from pg_prepared_statements")
            return cursor.fetchone()[0]

    yield ask
    connections["default"].close()


def test_a_session_keeps_the_plan_of_what_it_is_asked_again(kept_plans):
    assert kept_plans() == 1


def test_a_session_of_a_pooler_keeps_no_plan(kept_plans, monkeypatch):
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 0)

    assert kept_plans() == 0


def test_an_error_of_a_statement_whose_plan_is_kept_is_djangos():
    with plans.cursor("default") as cursor, pytest.raises(DataError):
        cursor.execute("select 1 / %s::int", [0])

"""stega/database/mismatch.py: what a statement fails on is the schema while that is another, else the statement."""

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, ProgrammingError, connections, transaction

from stega.database import mismatch
from stega.database.mismatch import OtherSchema
from stega.database.outages import is_outage
from stega.wording.text import told

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

WRONG = {
    "no such column": "select nope from django_migrations",
    "no such table": "select 1 from nope",
    "no such function": "select nope()",
    "no such schema": "create table nope.nope ()",
    "no such type": "select null::nope",
    "no such unique index": "insert into django_migrations (app) values ('x') on conflict (app) do nothing",
    "a column wants a value": "insert into django_migrations (app, name) values ('x', 'y')",
}


@pytest.fixture
def differ(monkeypatch):
    """Let the database of that alias be another than this process needs."""

    def differ(alias, difference="the database lacks migration tickets.0004_x. Run: migrate"):
        monkeypatch.setitem(mismatch.differences, alias, lambda: difference)

    return differ


def run(statement, alias="default"):
    with pytest.raises(DatabaseError) as failure, connections[alias].cursor() as cursor:
        cursor.execute(statement)
    return failure.value


@pytest.mark.parametrize("statement", WRONG.values(), ids=WRONG)
def test_while_the_schema_is_another_a_doubtful_error_is_an_outage_that_says_what_to_do(differ, statement):
    differ("default")

    error = run(statement)

    assert is_outage(error)
    assert told(error) == str(error)
    assert str(error).startswith("the database lacks migration tickets.0004_x. Run: migrate (")


@pytest.mark.parametrize("statement", WRONG.values(), ids=WRONG)
def test_while_the_schema_is_the_right_one_it_is_the_statements_fault(statement):
    error = run(statement)

    assert type(error) in (ProgrammingError, IntegrityError)
    assert not is_outage(error)


def test_another_mistake_stays_one_while_the_schema_is_another(differ):
    differ("default")

    assert not is_outage(run("select 1 / 0"))


def test_what_changes_the_schema_is_told_its_own_faults(differ):
    differ("default")

    with mismatch.undoubted():
        error = run("select 1 from nope")

    assert type(error) is ProgrammingError
    assert is_outage(run("select 1 from nope"))


def test_the_schema_of_another_database_is_no_excuse(differ):
    differ("events")

    assert not is_outage(run("select 1 from nope"))


def test_a_statement_that_works_is_asked_nothing(monkeypatch, django_assert_num_queries):
    monkeypatch.setitem(mismatch.differences, "default", lambda: pytest.fail("looked"))

    with django_assert_num_queries(1), connections["default"].cursor() as cursor:
        cursor.execute("select 1")


def test_the_difference_is_seen_from_within_a_transaction_that_failed(monkeypatch):
    def look():
        with connections["default"].cursor() as cursor:
            cursor.execute("select 'another'")
            return cursor.fetchone()[0]

    monkeypatch.setitem(mismatch.differences, "default", look)
    usual = connections["default"]

    with pytest.raises(OtherSchema, match="another"), transaction.atomic(), usual.cursor() as cursor:
        cursor.execute("select nope")

    assert connections["default"] is usual


def test_a_look_that_fails_by_itself_changes_nothing(monkeypatch):
    monkeypatch.setitem(mismatch.differences, "default", lambda: run_bare("select nope"))

    assert type(run("select 1 from elsewhere")) is ProgrammingError


def run_bare(statement):
    with connections["default"].cursor() as cursor:
        cursor.execute(statement)


def test_a_database_that_went_away_before_it_could_be_asked_is_an_outage(monkeypatch):
    def look():
        raise OperationalError("server closed the connection")

    monkeypatch.setitem(mismatch.differences, "default", look)

    assert is_outage(run("select nope"))


@pytest.mark.parametrize(("alias", "app", "name"), [("default", "stega", "0099_x"), ("jobs", "django_q", "0099_x")])
def test_a_newer_schema_is_recognised_by_its_recorded_migrations(alias, app, name):
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "insert into django_migrations (app, name, applied) values (%s, %s, now() - interval '1 day')", [app, name]
        )
    try:
        error = run("select nope", alias)
    finally:
        with connections[alias].cursor() as cursor:
            cursor.execute("delete from django_migrations where name = %s", [name])

    assert is_outage(error)
    assert f"{alias} database has migration {app}.0099_x, which this process does not know. Restart" in str(error)


def test_an_event_log_that_is_not_there_is_waited_for(monkeypatch):
    with transaction.atomic(using="events"), connections["events"].cursor() as cursor:
        cursor.execute("alter function pgque.engine_version() rename to engine_version_hidden")
    try:
        error = run("select pgque.nope()", "events")
    finally:
        with connections["events"].cursor() as cursor:
            cursor.execute("alter function pgque.engine_version_hidden() rename to engine_version")

    assert is_outage(error)
    assert "Run: python manage.py pgque_bootstrap" in str(error)

"""stega/database/base.py: which sessions are kept, and what a session is given."""

import logging
from contextlib import closing

import psycopg
import pytest
from django.db import InternalError, close_old_connections, connections, reset_queries

from stega.database import clock
from stega.database.base import DatabaseWrapper
from stega.models import OutboxEntry
from tests.factories import make_product
from tests.support.waiting import wait_until
from tickets.models import Product

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def test_a_session_that_began_in_a_read_only_period_is_made_anew_after_its_first_error():
    connection = connections["default"]
    with connection.cursor() as cursor:
        cursor.execute("set default_transaction_read_only = on")
    with pytest.raises(InternalError):
        OutboxEntry.objects.update(attempts=0)

    close_old_connections()

    assert OutboxEntry.objects.update(attempts=0) == 0


def test_a_session_that_takes_no_writes_is_ended_where_a_pooler_would_keep_it():
    connection = connections["default"]
    with closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute("set default_transaction_read_only = on")
        pid = other.connection.info.backend_pid

        is_usable = other.is_usable()

    def is_gone():
        with connection.cursor() as cursor:
            cursor.execute("select from pg_stat_activity where pid = %s", [pid])
            return not cursor.rowcount

    assert not is_usable
    wait_until(is_gone, timeout=5)


def test_a_connection_that_was_cut_is_not_usable():
    connection = connections["default"]
    connection.ensure_connection()
    connection.connection.close()

    is_usable = connection.is_usable()
    connection.close()

    assert not is_usable


@pytest.fixture
def web_session(monkeypatch):
    """A session as a web process begins it, with the given `statement_timeout` from elsewhere; what it is then."""

    def begin(given="0"):
        connection = connections["default"]
        connection.close()
        monkeypatch.setattr(DatabaseWrapper, "statement_seconds", 4.5)
        monkeypatch.setitem(connection.settings_dict["OPTIONS"], "options", f"-c statement_timeout={given}")
        with connection.cursor() as cursor:
            cursor.execute("show statement_timeout")
            return cursor.fetchone()[0]

    yield begin
    connections["default"].close()


@pytest.mark.parametrize(("given", "limit"), [("0", "4500ms"), ("1min", "4500ms"), ("100ms", "100ms")])
def test_the_server_ends_statements_of_the_web_unless_it_does_so_sooner(web_session, given, limit):
    assert web_session(given) == limit


def test_a_session_of_a_pooler_is_left_as_it_is(web_session, monkeypatch):
    """A pooler tells its client of a backend of its own making."""
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 0)

    assert web_session() == "0"


def test_a_good_connection_is_kept():
    connection = connections["default"]
    connection.ensure_connection()
    session = connection.connection

    close_old_connections()

    assert connection.is_usable()
    assert connection.connection is session


@pytest.mark.parametrize(("level", "kept"), [(logging.INFO, 0), (logging.DEBUG, 1)])
def test_debug_mode_keeps_statements_only_when_their_log_is_read(settings, caplog, level, kept):
    settings.DEBUG = True
    reset_queries()
    caplog.set_level(level, "django.db.backends")

    clock.now()

    assert len(connections["default"].queries) == kept


def test_rows_that_are_read_one_by_one_come_to_the_end_though_the_session_is_another():
    for number in range(3):
        make_product(f"Shop {number}")
    rows = Product.objects.order_by("name").iterator(chunk_size=1)
    first = next(rows)

    connections["default"].close()

    assert [first.name, *(row.name for row in rows)] == ["Shop 0", "Shop 1", "Shop 2"]


@pytest.mark.parametrize("alias", ["default", "jobs", "events"])
def test_no_statement_is_prepared_however_often_it_comes(alias):
    with connections[alias].cursor() as cursor:
        for number in range(20):
            cursor.execute("select %s::int", [number])
        cursor.execute("select count(*) from pg_prepared_statements")

        assert cursor.fetchone() == (0,)

"""stega/pgque/leadership.py: who says nothing for long loses the lead."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connections

from stega.pgque.leadership import Leadership
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


@pytest.fixture
def leader():
    """The session of another process that leads."""
    settings = connections["events"].settings_dict
    address = {"host": settings["HOST"], "port": settings["PORT"], "user": settings["USER"], "dbname": settings["NAME"]}
    with psycopg.connect(**address, password=settings["PASSWORD"], autocommit=True) as session:
        session.execute("select pg_advisory_lock(hashtext('stega'), hashtext('test'))")
        yield session
    with connections["events"].cursor() as cursor:
        cursor.execute("select pg_advisory_unlock_all()")


def test_a_leader_that_says_nothing_is_deposed(leader):
    stand_by = Leadership("test", patience=0.05)

    wait_until(stand_by.held, timeout=10)

    with pytest.raises(psycopg.OperationalError):
        leader.execute("select 1")


def test_a_leader_that_says_something_now_and_then_keeps_the_lead(leader):
    stand_by = Leadership("test", patience=60)

    assert not stand_by.held()
    leader.execute("select 1")


def test_a_leader_in_a_long_statement_keeps_the_lead(leader):
    stand_by = Leadership("test", patience=0.05)
    with ThreadPoolExecutor(1) as threads:
        work = threads.submit(leader.execute, "select 'done' from pg_sleep(1)")

        wait_until(lambda: stand_by.held() or work.done(), timeout=10)

        assert work.result().fetchone() == ("done",)


def test_without_patience_a_silent_leader_keeps_the_lead(leader):
    assert not Leadership("test").held()
    leader.execute("select 1")

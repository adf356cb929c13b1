"""The engine alone, on a database of its own: no Django."""

import os
import uuid
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.support.sessions import Session

VENDOR = Path(__file__).resolve().parents[2] / "vendor" / "pgque"


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("engine")


@pytest.fixture(scope="session")
def make_database():
    """Create databases on the events server; they are dropped at the end."""
    server = os.environ["EVENTS_DATABASE_URL"]
    names = []

    def make():
        names.append(f"engine_{uuid.uuid4().hex[:12]}")
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'create database "{names[-1]}"')
        return make_conninfo(server, dbname=names[-1])

    yield make
    with psycopg.connect(server, autocommit=True) as connection:
        for name in names:
            connection.execute(f'drop database "{name}" with (force)')


@pytest.fixture(scope="session")
def url(make_database):
    """A database with the engine installed."""
    url = make_database()
    with psycopg.connect(url) as connection:
        connection.execute((VENDOR / "pgque.sql").read_text())
    return url


@pytest.fixture
def session(url, queue):
    """Opens further sessions; all are closed at the end of the test, before its queue is dropped."""
    opened = []

    def open_session(**options):
        opened.append(Session(url, **options))
        return opened[-1]

    yield open_session
    for one in opened:
        one.__exit__(None, None, None)


@pytest.fixture
def sql(url):
    """A session in autocommit: each call is a transaction of its own."""
    with Session(url, autocommit=True) as one:
        yield one


@pytest.fixture
def queue(sql):
    """A queue of the test's own."""
    name = f"q.{uuid.uuid4().hex[:10]}"
    sql.rows("select pgque.create_queue(%s)", [name])
    yield name
    with psycopg.connect(sql.connection.info.dsn, autocommit=True) as connection:
        connection.execute("select pgque.drop_queue(queue_name, true) from pgque.queue where queue_name = %s", [name])


@pytest.fixture
def consumer(sql, queue):
    """A consumer of the queue."""
    sql.rows("select pgque.subscribe(%s, 'reader')", [queue])
    return "reader"

"""Fixtures of the whole suite."""

import uuid

import pytest
from django.db import connections

from stega.pgque import client


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """The three test databases, the event log installed on `events` as the bootstrap does it."""
    from stega.pgque.bootstrap import bootstrap

    with django_db_blocker.unblock():
        bootstrap(lambda line: None)


@pytest.fixture
def queue(transactional_db, settings):
    """A queue of the test's own, the application's queue for as long as the test runs; needs `events` on its mark."""
    name = f"test.{uuid.uuid4().hex[:12]}"
    client.create_queue(name)
    settings.PGQUE_QUEUE = name
    yield name
    with connections["events"].cursor() as cursor:
        cursor.execute("select pgque.drop_queue(%s, true)", [name])

"""Fixtures of the whole suite."""

import math
import uuid
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.db import connections
from django.test import Client
from django.utils import timezone, translation

from accounts.models import User
from accounts.roles import Role
from stega import outbox
from stega.installation import agreement
from stega.pgque import client
from tests.factories import make_product, make_user
from tests.support import emptying
from tests.support.scheduling import Scheduler
from tickets.models import Product


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Scheduler(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_modifyitems(items):
    """Long tests first, so that no worker of xdist is alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """The three test databases, the event log installed on `events` as the bootstrap does it."""
    from stega.pgque.bootstrap import bootstrap

    with django_db_blocker.unblock():
        bootstrap(lambda line: None)
    emptying.use()


@pytest.fixture
def queue(transactional_db, settings):
    """A queue of the test's own, the application's queue for as long as the test runs; needs `events` on its mark."""
    name = f"test.{uuid.uuid4().hex[:12]}"
    client.create_queue(name)
    settings.PGQUE_QUEUE = name
    yield name
    with connections["events"].cursor() as cursor:
        cursor.execute("select pgque.drop_queue(%s, true)", [name])


@pytest.fixture(autouse=True)
def no_reader():
    """Nobody's language and time zone: a request of an earlier test leaves those of its user active."""
    translation.activate(django_settings.LANGUAGE_CODE)
    timezone.deactivate()


@pytest.fixture(autouse=True)
def settled_migrations(monkeypatch):
    """A test's faults are its own from the first moment, though the tables are new."""
    monkeypatch.setattr(agreement, "SETTLING", timedelta())


@pytest.fixture(autouse=True)
def resting_fast_path(monkeypatch):
    """Outbox entries stay in the outbox, whatever databases a test has; the outbox's own tests wake the fast path."""
    monkeypatch.setattr(outbox, "_rest_until", math.inf)


@pytest.fixture(autouse=True)
def facts_of_the_test(settings):
    """The test's own thread asks for facts, so that it sees what the test wrote and has not committed."""
    settings.FACTS_SECONDS = 0


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["tests.factories.QuickHasher"]


@pytest.fixture
def customer(db) -> User:
    return make_user("customer")


@pytest.fixture
def outsider(db) -> User:
    """A customer who has nothing to do with the customer's tickets."""
    return make_user("outsider")


@pytest.fixture
def agent(db) -> User:
    return make_user("agent", Role.AGENT)


@pytest.fixture
def other_agent(db) -> User:
    return make_user("colleague", Role.AGENT)


@pytest.fixture
def admin(db) -> User:
    return make_user("admin", Role.ADMIN, is_staff=True, is_superuser=True)


@pytest.fixture
def product(db) -> Product:
    return make_product()


@pytest.fixture
def as_user():
    """A browser in which that person is signed in."""

    def browser(user: User) -> Client:
        signed_in = Client()
        signed_in.force_login(user)
        return signed_in

    return browser

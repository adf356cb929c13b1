"""People with and without rights in the console, and dead letters to look at."""

import pytest
from django.contrib.auth.models import Permission

from accounts.models import User
from accounts.roles import Role
from stega.pgque import client
from tests.factories import make_user
from tests.support.letters import bury


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/operations/console" in item.path.as_posix():
            item.add_marker(pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True))


def staff(username: str, *codenames: str) -> User:
    user = make_user(username, Role.ADMIN, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="operations", codename__in=codenames))
    return user


@pytest.fixture
def viewer(transactional_db) -> User:
    """Sees the console, and no more."""
    return staff("viewer", "view_console")


@pytest.fixture
def operator(transactional_db) -> User:
    """Sees and operates the console, and reads no payload."""
    return staff("operator", "view_console", "operate_console")


@pytest.fixture
def reader(transactional_db) -> User:
    """Sees the console with the payloads."""
    return staff("reader", "view_console", "view_payload")


@pytest.fixture
def colleague(transactional_db) -> User:
    """On the staff, without any right in the console."""
    return staff("colleague")


@pytest.fixture
def unstaffed(transactional_db) -> User:
    """Has every right, and is no longer on the staff."""
    user = staff("unstaffed", "view_console", "operate_console", "view_payload")
    User.objects.filter(pk=user.pk).update(is_staff=False)
    return user


@pytest.fixture
def letters(queue):
    """500 dead letters of 3 causes, left by one consumer; the ids by cause."""
    client.subscribe(queue, "notification_worker")
    return {
        "unknown": bury(
            queue, "notification_worker", "email to user:%s given up: <u%s@example.com> unknown", count=300
        ),
        "bad": bury(queue, "notification_worker", "bad payload: ticket.welcome lacks email", count=150),
        "type": bury(queue, "notification_worker", "unknown event type 'x.y'", count=50, event_type="x.y"),
    }


@pytest.fixture
def group(queue):
    """The address of the group of one cause."""
    return {
        "queue": queue,
        "consumer": "notification_worker",
        "type": "ticket.welcome",
        "cause": "bad payload: ticket.welcome lacks email",
    }

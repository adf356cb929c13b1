"""People with and without rights in the console, and dead letters to look at."""

import pytest

from accounts.models import User
from stega.pgque import client
from tests.support.console import letters_of_three_causes, staff


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/operations/console" in item.path.as_posix():
            item.add_marker(pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True))


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
    return letters_of_three_causes(queue)


@pytest.fixture
def group(queue):
    """The address of the group of one cause."""
    return {
        "queue": queue,
        "consumer": "notification_worker",
        "type": "ticket.welcome",
        "cause": "bad payload: ticket.welcome lacks email",
    }

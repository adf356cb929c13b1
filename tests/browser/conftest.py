"""People at a real browser: Chromium, a running web process, the test databases.

Whatever a test is about, it fails when a page it opened logs an error, asks another host for anything or lacks a file.
"""

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from playwright.sync_api import sync_playwright

from tests.browser.visitor import Visitor
from tests.processes.conftest import env, event_log, mailbox, start  # noqa: F401 - fixtures of these tests too
from tests.support import processes
from tests.support.console import letters_of_three_causes, row_of_each_kind, staff

os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps an event loop in the thread of the tests, which wait

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_sessionstart(session):
    if CHROMIUM is None:
        raise pytest.UsageError("Chromium is not installed: these tests drive it (Debian: apt-get install chromium).")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True))
            item.add_marker(pytest.mark.timeout(180))


@pytest.fixture(scope="session")
def chromium():
    """The browser, which keeps pages to go back to, as people's do; Playwright's own choice is that it does not."""
    launch = {"executable_path": CHROMIUM, "args": FLAGS, "ignore_default_args": ["--disable-back-forward-cache"]}
    with sync_playwright() as playwright, playwright.chromium.launch(**launch) as browser:
        yield browser


@pytest.fixture(scope="session")
def site(django_db_setup):
    """The address of a web process, as `make run` starts it; patient with a machine that has much to do."""
    process, address = processes.web(processes.environment(FACTS_SECONDS=5))
    with process:
        yield address


@pytest.fixture
def visit(chromium, site, transactional_db):
    """Let somebody come with a browser of their own; signed in when a user is given."""
    with ExitStack() as leaving:
        visitors = []

        def visit(user=None, **device):
            visitor = leaving.enter_context(Visitor.at(chromium, site, **device))
            visitors.append(visitor)
            if user:
                visitor.sign_in(user)
            return visitor

        yield visit
        assert [fault for visitor in visitors for fault in visitor.faults] == []


@pytest.fixture
def viewer(transactional_db):
    """Sees the console, payloads too, and operates nothing."""
    return staff("viewer", "view_console", "view_payload")


@pytest.fixture
def operator(transactional_db):
    return staff("operator", "view_console", "view_payload", "operate_console")


@pytest.fixture
def letters(event_log):  # noqa: F811
    """500 dead letters of 3 causes on the application's queue; the ids by cause."""
    return letters_of_three_causes(django_settings.PGQUE_QUEUE)


@pytest.fixture
def everything(letters, customer, product, operator):
    """A row of each kind that the console shows; the ticket they are about."""
    return row_of_each_kind(django_settings.PGQUE_QUEUE, customer, product, operator)

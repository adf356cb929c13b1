"""What the process tests share: an empty Stega, real receivers, its processes."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import connections

from stega.pgque import client
from stega.pgque.bootstrap import bootstrap
from tests.support import processes
from tests.support.mailbox import Mailbox
from tests.support.receivers import WebhookReceiver


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.process)
            item.add_marker(pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True))
            item.add_marker(pytest.mark.timeout(180))


@pytest.fixture
def event_log(transactional_db):
    """The application's own queue, empty, with its consumers subscribed."""
    bootstrap(lambda line: None)
    yield
    with connections["events"].cursor() as cursor:
        for consumer in {row["consumer_name"] for row in client.consumer_info()}:
            if "." in consumer:
                group, member = consumer.split(".")
                client.unsubscribe_subconsumer(django_settings.PGQUE_QUEUE, group, member)
        cursor.execute("select pgque.drop_queue(%s, true)", [django_settings.PGQUE_QUEUE])


@pytest.fixture
def mailbox():
    with Mailbox() as mailbox:
        yield mailbox


@pytest.fixture
def slack():
    with WebhookReceiver() as receiver:
        yield receiver


@pytest.fixture
def env(event_log, mailbox):
    """The environment of Stega's processes: mail goes to the mailbox, and nothing waits long."""
    return processes.environment(
        EMAIL_HOST=mailbox.host,
        EMAIL_PORT=mailbox.port,
        EMAIL_TIMEOUT=1,
        SLACK_TIMEOUT_SECONDS=1,
        DELIVERY_LEASE_SECONDS=4,
        TASK_TIMEOUT_SECONDS=5,
        TASK_RETRY_SECONDS=6,
        TASK_WORKERS=1,
    )


@pytest.fixture
def start(env):
    """Start `manage.py` commands that end with the test."""
    with ExitStack() as started:

        def start(*arguments, saying="started", **changes):
            changed = {name: str(value) for name, value in changes.items()}
            process = started.enter_context(processes.manage(*arguments, env={**env, **changed}))
            process.wait_for(saying)
            return process

        yield start


@pytest.fixture
def site(env):
    """The address of a running web process."""
    process, address = processes.web(env)
    with process:
        yield address

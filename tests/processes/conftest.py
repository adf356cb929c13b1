"""What the process tests share: an empty Stega, real receivers, its processes."""

import sys
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import connections

from stega.pgque import client
from stega.pgque.bootstrap import bootstrap
from tests.support import processes
from tests.support.event_log import tick
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
def env(event_log, mailbox, tmp_path):
    """The environment of Stega's processes: mail goes to the mailbox, and nothing waits long."""
    return processes.environment(
        STEGA_RUN_DIR=tmp_path / "run",
        HEALTHY_SECONDS=3,
        EMAIL_HOST=mailbox.host,
        EMAIL_PORT=mailbox.port,
        EMAIL_TIMEOUT=1,
        SLACK_TIMEOUT_SECONDS=1,
        DELIVERY_LEASE_SECONDS=4,
        UNCERTAIN_PAUSE_SECONDS=1,
        TASK_TIMEOUT_SECONDS=3,
        TASK_RETRY_SECONDS=4,
        TASK_WORKERS=1,
        SCHEDULER_SECONDS=1,
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


@pytest.fixture
def send(settings):
    """Send messages of one batch, numbered from 1, each with what the worker shall do."""

    def send(*verbs):
        for number, verb in enumerate(verbs, 1):
            payload = {"user_id": number, "email": "customer@example.com", "display_name": verb}
            client.insert_event(settings.PGQUE_QUEUE, "ticket.welcome", payload, str(uuid.uuid4()))
        tick(settings.PGQUE_QUEUE)

    return send


@pytest.fixture
def work(env):
    """Start `tests.support.worker`; every one is killed at the end."""
    with ExitStack() as started:

        def work(*arguments, saying="started", **changes):
            command = [sys.executable, "-m", "tests.support.worker", *map(str, arguments)]
            changed = {**env, "DJANGO_SETTINGS_MODULE": "stega.settings"} | {key: str(changes[key]) for key in changes}
            worker = started.enter_context(processes.RunningProcess(*command, env=changed))
            worker.wait_for(saying)
            return worker

        yield work

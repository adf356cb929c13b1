"""stega/pgque/session.py, and what goes through a pooler: no session is relied on but the direct one."""

import uuid

import pytest
from django.db import OperationalError, connections

from stega.pgque import client, session
from stega.pgque.consumer import Consumer
from stega.pgque.leadership import Leadership
from stega.processes.process import name_connections
from tests.support.event_log import tick
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


@pytest.fixture(autouse=True)
def pooled(settings):
    settings.EVENTS_POOLED = True
    yield
    session.reset()


@pytest.fixture
def direct(settings):
    settings.EVENTS_DIRECT_DATABASE = {"NAME": connections["events"].settings_dict["NAME"]}


def send(queue, count):
    for number in range(count):
        payload = {"user_id": number, "email": "customer@example.com", "display_name": "Customer"}
        client.insert_event(queue, "ticket.welcome", payload, str(uuid.uuid4()))
    tick(queue)


def has_lock(connection):
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()")
        return cursor.fetchone()[0]


@pytest.mark.parametrize("page", [1, 2, 5, 7])
def test_every_event_is_read_page_by_page_though_each_query_has_another_session(queue, page, monkeypatch):
    client.subscribe(queue, "notification_worker")
    send(queue, 5)
    seen = []
    consumer = Consumer("notification_worker", {}, page=page)

    def handle(message):
        seen.append(message.payload["user_id"])
        connections["events"].close()

    consumer.handlers = {"ticket.welcome": handle}
    consumer.run(until_idle=True)

    assert seen == [0, 1, 2, 3, 4]


def test_without_a_direct_address_no_lock_is_left_behind_in_a_pooled_session(queue):
    leadership = Leadership("test")

    assert leadership.held()
    assert not has_lock(connections["events"])


def test_the_lead_is_held_by_the_direct_connection(queue, direct):
    leadership = Leadership("test")

    assert leadership.held()
    assert has_lock(session.connection())
    assert not has_lock(connections["events"])


def test_the_direct_connection_alone_bears_the_name_of_its_process(queue, direct, monkeypatch):
    """A pool keeps its sessions, and their names, when the process is gone."""
    options = dict(connections["events"].settings_dict["OPTIONS"])
    monkeypatch.setitem(connections["events"].settings_dict, "OPTIONS", options)
    name_connections("notification_worker", ["events"])

    names = [name_of(connection) for connection in (connections["events"], session.connection())]

    connections["events"].close()
    assert names == ["notification_worker (pooled)", "notification_worker"]


def name_of(connection):
    with connection.cursor() as cursor:
        cursor.execute("show application_name")
        return cursor.fetchone()[0]


def test_a_lead_that_was_lost_with_its_connection_is_noticed(queue, direct, settings):
    settings.STANDBY_SECONDS = 0.0
    leadership = Leadership("test")
    leadership.held()
    with connections["events"].cursor() as cursor:
        cursor.execute("select pg_terminate_backend(%s)", [session.connection().connection.info.backend_pid])

    with pytest.raises(OperationalError):
        wait_until(lambda: not leadership.held(), timeout=5)

    session.reset()
    assert leadership.held()


def test_wake_ups_come_by_the_direct_connection(queue, direct):
    consumer = Consumer("notification_worker", {})
    consumer.setup()
    (listener,) = consumer.wakeups

    send(queue, 1)

    wait_until(listener.pending, timeout=5)

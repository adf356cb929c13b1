"""stega/pgque/bootstrap.py on an empty database: either engine, again and again, and never one over the other."""

import uuid

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils import timezone

from stega import checks
from stega.pgque import client, vendoring
from stega.pgque.bootstrap import bootstrap
from stega.pgque.catalogue import NOTIFICATION_WORKER, SLA_BREACH_DISPATCHER
from stega.pgque.upstream import Release
from tests.support import servers
from tests.support.event_log import tick
from tests.support.upstream import upstream_script


@pytest.fixture
def events(django_db_blocker, monkeypatch):
    """The alias `events` on an empty database."""
    name = f"bootstrap_{uuid.uuid4().hex[:12]}"
    connection = connections["events"]
    with django_db_blocker.unblock(), psycopg.connect(servers.events.url(), autocommit=True) as server:
        server.execute(f'create database "{name}"')
        connection.close()
        monkeypatch.setitem(connection.settings_dict, "NAME", name)
        yield
        connection.close()
        server.execute(f'drop database "{name}" with (force)')


@pytest.fixture
def builtin(events, settings):
    settings.PGQUE_ENGINE = "builtin"


@pytest.fixture
def vendored(events, settings, upstream):
    """PGQUE_ENGINE=upstream, and an upstream script that was vendored."""
    settings.PGQUE_ENGINE = "upstream"
    vendor_script(upstream, upstream_script())


def vendor_script(upstream, script):
    release = Release("v1", "c" * 40, {"pgque.sql": script.encode(), "LICENSE": b""})
    vendoring.write(upstream, release, vendoring.manifest(release, "https://example.com/a.git", timezone.now()))


def steps():
    said = []
    bootstrap(said.append)
    return said


@pytest.mark.parametrize("engine", ["builtin", "vendored"])
def test_an_event_goes_through_the_installed_engine(request, settings, engine):
    request.getfixturevalue(engine)
    bootstrap(lambda line: None)

    client.insert_event(settings.PGQUE_QUEUE, "ticket.welcome", {}, "key")
    tick(settings.PGQUE_QUEUE)

    for consumer in (NOTIFICATION_WORKER, SLA_BREACH_DISPATCHER):
        batch = client.next_batch(settings.PGQUE_QUEUE, consumer)
        assert [event.extra1 for event in client.batch_events(batch, 10)] == ["key"]


@pytest.mark.parametrize("engine", ["builtin", "vendored"])
def test_the_second_time_installs_nothing(request, engine):
    request.getfixturevalue(engine)

    first, second = steps()[0], steps()[0]

    assert first.startswith("engine installed")
    assert second == "engine is current"


@pytest.mark.parametrize("engine", ["builtin", "vendored"])
def test_the_system_check_knows_whether_the_engine_is_installed(request, engine):
    request.getfixturevalue(engine)
    before = checks.engine_is_current(None, databases=["events"])
    bootstrap(lambda line: None)

    after = checks.engine_is_current(None, databases=["events"])

    assert [message.id for message in before] == ["stega.E011"]
    assert after == []


def test_another_script_of_upstream_is_installed_and_keeps_the_queue(vendored, upstream, settings):
    bootstrap(lambda line: None)
    client.insert_event(settings.PGQUE_QUEUE, "ticket.welcome", {}, "key")
    vendor_script(upstream, upstream_script() + "\nselect 1;\n")

    said = steps()[0]
    tick(settings.PGQUE_QUEUE)

    assert said.startswith("engine installed")
    batch = client.next_batch(settings.PGQUE_QUEUE, NOTIFICATION_WORKER)
    assert [event.extra1 for event in client.batch_events(batch, 10)] == ["key"]


def test_an_edited_script_is_not_installed(vendored, upstream):
    with (upstream / "pgque.sql").open("a") as file:
        file.write("-- edited")

    with pytest.raises(ImproperlyConfigured, match=r"pgque\.sql is not the one of v1\. Fetch it again"):
        bootstrap(lambda line: None)

    assert client.version() is None


def test_a_script_that_was_not_fetched_gives_the_remedy(events, settings, upstream):
    settings.PGQUE_ENGINE = "upstream"

    with pytest.raises(ImproperlyConfigured, match="Fetch it: python"):
        bootstrap(lambda line: None)


def test_the_system_check_says_that_the_script_was_not_fetched(events, settings, upstream):
    settings.PGQUE_ENGINE = "upstream"

    messages = checks.engine_is_current(None, databases=["events"])

    assert [message.id for message in messages] == ["stega.E012"]


@pytest.mark.parametrize(("first", "second"), [("builtin", "upstream"), ("upstream", "builtin")])
def test_one_engine_is_not_installed_over_the_other(vendored, settings, first, second):
    settings.PGQUE_ENGINE = first
    bootstrap(lambda line: None)
    settings.PGQUE_ENGINE = second

    with pytest.raises(ImproperlyConfigured, match=f"holds the {first} engine"):
        bootstrap(lambda line: None)

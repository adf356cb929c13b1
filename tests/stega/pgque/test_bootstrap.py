"""stega/pgque/bootstrap.py on an empty database: either engine, again and again, and never one over the other."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import DataError, connections
from django.utils import timezone

from stega import checks
from stega.pgque import client, vendoring
from stega.pgque.bootstrap import bootstrap
from stega.pgque.catalogue import NOTIFICATION_WORKER, SLA_BREACH_DISPATCHER
from stega.pgque.upstream import Release
from tests.support import servers
from tests.support.event_log import tick
from tests.support.sessions import Session
from tests.support.upstream import upstream_script
from tests.support.waiting import wait_until


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


@pytest.fixture
def rival(builtin, monkeypatch):
    """A session that holds a table of the installed engine and asks for the installer's lock once that waits for it.

    The installer, which finds an engine of another version, looks for a deadlock long before its rival does.
    """
    bootstrap(lambda line: None)
    monkeypatch.setattr("stega.pgque.bootstrap.vendored_version", lambda: "99.0.0")
    with connections["events"].cursor() as installer:
        installer.execute("set deadlock_timeout = '2s'")
        pid = installer.connection.info.backend_pid
    url = servers.events.url(connections["events"].settings_dict["NAME"])

    def get_in_the_way():
        wait_until(lambda: watcher.value("select cardinality(pg_blocking_pids(%s)) > 0", [pid]), timeout=10)
        session.rows("select pg_advisory_xact_lock(hashtext('pgque_bootstrap'))")
        session.commit()

    with Session(url) as session, Session(url, autocommit=True) as watcher, ThreadPoolExecutor(1) as pool:
        session.rows("set deadlock_timeout = '1min'")
        session.rows("lock table pgque.queue, pgque.tick in access exclusive mode")
        yield pool.submit(get_in_the_way)


def deadlocks():
    with connections["events"].cursor() as cursor:
        cursor.execute(
            "select pg_stat_clear_snapshot(), deadlocks from pg_stat_database where datname = current_database()"
        )
        return cursor.fetchone()[1]


def test_an_installer_that_a_deadlock_ends_tries_again(rival):
    said = steps()

    rival.result()
    assert said[0].startswith("engine installed")
    wait_until(lambda: deadlocks() == 1, timeout=10)


def test_an_installer_gives_up_on_what_is_no_deadlock(builtin, monkeypatch):
    tries = []

    def refuse():
        tries.append(1)
        client.query.value("select 1 / 0")

    monkeypatch.setattr("stega.pgque.bootstrap.engine_is_current", refuse)

    with pytest.raises(DataError):
        bootstrap(lambda line: None)

    assert len(tries) == 1

"""stega/database/vanishing.py: over real TCP, a server looks for the hosts of its clients."""

import socket
from contextlib import closing

import psycopg
import pytest
from django.db import connections

from stega.database import vanishing
from stega.database.base import DatabaseWrapper
from stega.embedded import server
from stega.pgque import session
from tests.support import servers

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"])


@pytest.fixture(scope="module")
def tcp_server(tmp_path_factory):
    """A server that is reached by TCP, where it can tell a host that vanished; what a connection to it needs."""
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
    one = server.Server(tmp_path_factory.mktemp("tcp"), durable=False, binaries=servers.app.binaries)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server, "PORT", port)
        patched.setitem(server.SETTINGS, "listen_addresses", "127.0.0.1")
        patched.setitem(server.SETTINGS, "port", str(port))
        one.start()
    yield {"HOST": "127.0.0.1", "PORT": port, "NAME": "postgres", "USER": server.SUPERUSER}
    one.delete()


@pytest.fixture
def begin(tcp_server):
    """A session of that alias over TCP; how its server looks for a host that vanished."""

    def begin(alias, **options):
        own = connections[alias].settings_dict
        return told(DatabaseWrapper({**own, **tcp_server, "OPTIONS": {**own["OPTIONS"], **options}}, alias))

    return begin


def told(connection):
    with closing(connection), connection.cursor() as cursor:
        return {name: _setting(cursor, name) for name in vanishing.of_server(vanishing.OF_CLIENT)}


def _setting(cursor, name):
    cursor.execute("select current_setting(%s)", [name])
    return cursor.fetchone()[0]


@pytest.mark.parametrize("alias", ["default", "jobs", "events"])
def test_the_server_looks_for_a_host_that_vanished_as_that_looks_for_its_server(begin, alias):
    assert begin(alias) == {
        "tcp_user_timeout": "20000",
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "2",
    }


def test_the_session_of_the_leader_and_the_listener_is_looked_after_as_well(tcp_server, settings):
    settings.EVENTS_POOLED, settings.EVENTS_DIRECT_DATABASE = True, tcp_server

    try:
        assert told(session.connection()) == vanishing.of_server(vanishing.OF_CLIENT)
    finally:
        session.reset()


def test_a_server_that_finds_out_sooner_is_left_to_it(begin):
    assert begin("events", options="-c tcp_keepalives_idle=3")["tcp_keepalives_idle"] == "3"


def test_a_server_behind_a_pooler_is_told_nothing_by_one_session(begin, monkeypatch):
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 0)

    assert begin("events")["tcp_user_timeout"] == "0"

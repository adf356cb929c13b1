"""stega/database/driver.py: what it relies on, and no document of psycopg promises."""

from contextlib import closing

import psycopg
import pytest
from psycopg import generators

from tests.support import servers

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def test_psycopg_stops_waiting_when_told_with_an_error_that_is_no_servers():
    with closing(psycopg.connect(servers.app.url(), autocommit=True)) as connection:
        connection.pgconn.send_query(b"select pg_sleep(60)")

        with pytest.raises(psycopg.OperationalError) as stopped:
            connection.wait(generators.execute(connection.pgconn), timeout=0.1)
        connection.cancel()

    assert stopped.value.sqlstate is None

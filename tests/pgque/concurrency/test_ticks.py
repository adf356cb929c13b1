"""Several tickers, and sessions that send while they tick: snapshots only go forward."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.support.engine import (
    drain,
    receive,
    send,
    tick,
)
from tests.support.sessions import Session


def test_two_tickers_at_once_make_one_tick(sql, session, queue):
    send(sql, queue, "a")
    one, two = session(), session(autocommit=True)

    first = one.value("select pgque.ticker(%s)", [queue])
    second = two.value("select pgque.ticker(%s)", [queue])
    one.commit()

    assert (first, second) == (2, None)


def test_snapshots_of_ticks_never_go_back_under_concurrent_tickers(sql, url, queue, consumer):
    sql.rows("select pgque.set_queue_config(%s, 'ticker_max_count', '1')", [queue])

    def work(number):
        with Session(url, autocommit=True) as one:
            for step in range(30):
                send(one, queue, f"{number}-{step}")
                one.value("select pgque.ticker()")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    tick(sql, queue)

    seen = drain(sql, queue, consumer)
    backwards = sql.value(
        "select count(*) from (select tick_snapshot s, lag(tick_snapshot) over (order by tick_id) p"
        " from pgque.tick join pgque.queue on queue_id = tick_queue where queue_name = %s) t"
        " where pg_snapshot_xmin(s) < pg_snapshot_xmin(p) or pg_snapshot_xmax(s) < pg_snapshot_xmax(p)",
        [queue],
    )
    assert backwards == 0
    assert len(seen) == 120
    assert len(set(seen)) == 120


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
def test_a_ticker_with_one_snapshot_for_all_is_refused(session, queue, level):
    old = session()
    old.connection.isolation_level = level

    with pytest.raises(psycopg.errors.InvalidTransactionState, match="READ COMMITTED"):
        old.value("select pgque.ticker(%s)", [queue])


def test_events_sent_by_the_ticking_transaction_come_with_the_next_tick(sql, session, queue, consumer):
    busy = session()
    send(busy, queue, "a")
    sql.value("select pg_current_xact_id()::text")
    tick(busy, queue)

    assert receive(busy, queue, consumer) == []
    send(busy, queue, "b")
    busy.commit()
    tick(sql, queue)

    assert drain(sql, queue, consumer) == ["a", "b"]

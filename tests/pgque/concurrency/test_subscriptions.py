"""Several sessions create, drop and subscribe at once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.support.sessions import Session


def test_first_subscriptions_at_once_all_succeed(sql, url, queue):
    barrier = Barrier(8)

    def subscribe(_):
        with Session(url, autocommit=True) as one:
            barrier.wait()
            return one.value("select pgque.subscribe(%s, 'newcomer')", [queue])

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(subscribe, range(8))) == 1


def test_a_consumer_name_used_on_many_queues_does_not_serialise_them(sql, session, queue):
    sql.rows("select pgque.create_queue('other ' || %s)", [queue])
    sql.rows("select pgque.subscribe('other ' || %s, 'shared')", [queue])
    one = session()
    one.rows("select pgque.subscribe(%s, 'shared')", [queue])

    assert sql.value("select pgque.subscribe('other ' || %s, 'shared')", [queue]) == 0
    one.rollback()
    sql.rows("select pgque.drop_queue('other ' || %s, true)", [queue])


def test_the_second_creator_of_a_queue_waits_and_gets_0(sql, session, queue):
    one, two = session(), session(autocommit=True)
    name = f"{queue} twice"
    assert one.value("select pgque.create_queue(%s)", [name]) == 1

    second = two.start_blocked("select pgque.create_queue(%s)", [name])
    one.commit()

    assert second.result() == [(0,)]
    sql.rows("select pgque.drop_queue(%s)", [name])


def test_a_queue_dropped_while_somebody_subscribes_is_not_dropped(sql, session, queue):
    one, two = session(), session(autocommit=True)
    one.rows("select pgque.subscribe(%s, 'late')", [queue])

    drop = two.start_blocked("select pgque.drop_queue(%s)", [queue])
    one.commit()

    assert "consumers still attached" in str(drop.exception())

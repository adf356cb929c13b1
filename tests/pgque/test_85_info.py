"""What operators look at."""

from tests.support.engine import join, receive, send, tick


def test_a_queue_shows_its_settings_and_its_state(sql, queue):
    send(sql, queue, "a", "b")

    [row] = sql.rows("select * from pgque.get_queue_info(%s)", [queue])

    assert row[:3] == (queue, 3, 0)
    assert row[5:8] == (False, False, 500)
    assert (row[12], row[13]) == (2, 1)


def test_all_queues_are_listed_by_name(sql, queue):
    names = [row[0] for row in sql.rows("select * from pgque.get_queue_info()")]

    assert queue in names
    assert names == [row[0] for row in sql.rows("select queue_name from pgque.queue order by 1")]


def test_the_rate_is_that_of_the_last_ticks(sql, queue):
    assert sql.value("select ev_per_sec from pgque.get_queue_info(%s)", [queue]) is None

    tick(sql, queue)
    sql.rows("update pgque.tick set tick_time = tick_time - interval '10 seconds' where tick_id = 1")

    assert 100 < sql.value("select ev_per_sec from pgque.get_queue_info(%s)", [queue]) < 201


def test_a_consumer_shows_what_it_has_before_it(sql, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    batch = receive(sql, queue, consumer)[0][1]

    [row] = sql.rows("select * from pgque.get_consumer_info(%s)", [queue])

    assert (row[0], row[1], row[4:]) == (queue, "reader", (1, batch, 2, 2001))
    assert sql.rows("select * from pgque.get_consumer_info(%s, 'nobody')", [queue]) == []
    assert row[:2] in [line[:2] for line in sql.rows("select * from pgque.get_consumer_info()")]


def test_idle_members_show_no_lag(sql, queue):
    join(sql, queue, "group", "a")

    rows = sql.rows("select consumer_name, lag is null, pending_events from pgque.get_consumer_info(%s)", [queue])

    assert rows == [("group", False, 0), ("group.a", True, None)]


def test_a_batch_shows_its_owner_and_borders(sql, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    batch = receive(sql, queue, consumer)[0][1]

    [row] = sql.rows("select * from pgque.get_batch_info(%s)", [batch])

    assert (row[0], row[1], row[4], row[5], row[7:]) == (queue, "reader", 1, 2, (0, 2001))
    assert sql.rows("select * from pgque.get_batch_info(-1)") == [(None,) * 9]


def test_the_status_names_every_component(sql, queue):
    rows = sql.rows("select * from pgque.status()")

    assert [row[0] for row in rows] == [
        "postgresql",
        "pgque",
        "scheduler",
        "ticker",
        "maintenance",
        "pg_cron",
        "pg_timetable",
        "queues",
        "consumers",
    ]
    assert rows[1][1:] == ("info", "0.2.2")
    assert rows[2][1:] == ("manual", "ticker_job_id=NULL, maint_job_id=NULL, tick_period_ms=100 (10.00 ticks/sec)")
    assert rows[7][2].endswith("queues configured")

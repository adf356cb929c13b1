"""Rotation and what runs beside it."""

import pytest

from tests.support.engine import age_rotation, current_table, drain, rotate, send, tick


def counts(sql, queue):
    prefix = sql.value("select queue_data_pfx from pgque.queue where queue_name = %s", [queue])
    return [sql.value(f"select count(*) from {prefix}_{number}") for number in range(3)]


def test_tables_take_turns_and_the_oldest_is_emptied(sql, queue):
    tables = []
    for payload in "abcd":
        send(sql, queue, payload)
        tables.append(rotate(sql, queue))

    assert tables == [1, 2, 0, 1]
    assert counts(sql, queue) == [1, 0, 1]


def test_nothing_rotates_before_its_time(sql, queue):
    sql.rows("select pgque.maint_rotate_tables_step1(%s)", [queue])

    assert current_table(sql, queue) == 0


def test_a_second_rotation_waits_for_step_2_of_the_first(sql, queue):
    for _ in range(2):
        age_rotation(sql, queue)
        sql.rows("select pgque.maint_rotate_tables_step1(%s)", [queue])

    assert current_table(sql, queue) == 1
    assert sql.value("select queue_switch_step2 from pgque.queue where queue_name = %s", [queue]) is None


def test_unread_events_are_never_truncated(sql, queue, consumer):
    for payload in "abcdef":
        send(sql, queue, payload)
        tick(sql, queue)
        rotate(sql, queue)

    assert drain(sql, queue, consumer) == list("abcdef")


def test_events_of_an_open_batch_are_never_truncated(sql, queue, consumer):
    send(sql, queue, "a")
    tick(sql, queue)
    batch = sql.value("select pgque.next_batch(%s, 'reader')", [queue])
    for _ in range(4):
        rotate(sql, queue)

    assert [row[5] for row in sql.rows("select * from pgque.get_batch_events(%s)", [batch])] == ["a"]


def test_old_ticks_go_and_the_newest_stays(sql, queue, consumer):
    for _ in range(5):
        tick(sql, queue)
    drain(sql, queue, consumer)
    for _ in range(3):
        rotate(sql, queue)

    assert sql.rows(
        "select tick_id from pgque.tick join pgque.queue on queue_id = tick_queue where queue_name = %s", [queue]
    ) == [(6,)]


def test_maint_rotates_what_is_due_and_leaves_step_2_alone(sql, queue):
    age_rotation(sql, queue)

    assert sql.value("select pgque.maint()") >= 1
    assert current_table(sql, queue) == 1
    assert ("pgque.maint_rotate_tables_step2", None) in sql.rows("select * from pgque.maint_operations()")


def test_a_rotation_that_fails_does_not_stop_the_others(sql, queue):
    other = f"a {queue}"
    sql.rows("select pgque.create_queue(%s)", [other])
    for name in (other, queue):
        age_rotation(sql, name)
    sql.rows("update pgque.queue set queue_switch_step1 = 9000000000000 where queue_name = %s", [other])
    notices = []
    sql.connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))

    sql.value("select pgque.maint()")

    assert (current_table(sql, other), current_table(sql, queue)) == (0, 1)
    assert f"queue {other} maint failure: step1=9000000000000" in "".join(notices)
    sql.rows("select pgque.drop_queue(%s, true)", [other])


def test_autovacuum_leaves_nothing_to_vacuum_by_hand(sql):
    assert sql.rows("select * from pgque.maint_tables_to_vacuum()") == []


@pytest.fixture
def hook(sql, queue):
    """A maintenance function that the queue names; it writes the queue's name down."""
    sql.rows("create table public.hooked (name text)")
    sql.rows("create function public.hook(text) returns void language sql as 'insert into public.hooked values ($1)'")
    sql.rows("update pgque.queue set queue_extra_maint = '{public.hook}' where queue_name = %s", [queue])
    yield
    sql.rows("drop table public.hooked")
    sql.rows("drop function public.hook")


def test_a_maintenance_function_of_the_engines_owner_is_run(sql, queue, hook):
    sql.value("select pgque.maint()")

    assert sql.rows("select * from public.hooked") == [(queue,)]


def test_a_maintenance_function_of_somebody_else_is_skipped_with_a_warning(sql, queue, hook):
    sql.rows("alter function public.hook(text) owner to pgque_admin")
    notices = []
    sql.connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))

    sql.value("select pgque.maint()")

    assert sql.rows("select * from public.hooked") == []
    assert "pgque.maint: skipping public.hook — owner pgque_admin is not maint() owner postgres" in notices


def test_a_maintenance_function_that_is_not_there_is_skipped_with_a_warning(sql, queue):
    sql.rows("update pgque.queue set queue_extra_maint = '{nowhere}' where queue_name = %s", [queue])
    notices = []
    sql.connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))

    sql.value("select pgque.maint()")

    assert "pgque.maint: skipping nowhere — invalid regprocedure: nowhere(text)" in notices

"""Who may do what."""

import psycopg
import pytest

from tests.support.engine import send, tick

CALLS = {
    "reader": ["receive('{queue}', 'reader')", "subscribe('{queue}', 'reader')", "get_queue_info()", "version()"],
    "writer": ["send('{queue}', 'a')", "insert_event('{queue}', 't', 'd')", "send_batch('{queue}', 't', array['a'])"],
    "admin": ["ticker()", "maint()", "maint_retry_events()", "maint_rotate_tables_step2()", "status()"],
}


@pytest.fixture
def acting(sql, session):
    """A session in the role of a reader, writer or admin."""

    def act(role):
        one = session(autocommit=True)
        one.rows(f"set role pgque_{role}")
        return one

    return act


@pytest.mark.parametrize(
    ("role", "call", "allowed"),
    [
        (role, call, owner == role or role == "admin")
        for role in ("reader", "writer", "admin")
        for owner, calls in CALLS.items()
        for call in calls
    ],
)
def test_a_role_may_do_its_own_part_and_the_admin_all(acting, queue, consumer, role, call, allowed):
    actor = acting(role)

    if allowed:
        actor.rows(f"select pgque.{call.format(queue=queue)}")
    else:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            actor.rows(f"select pgque.{call.format(queue=queue)}")


def test_a_reader_works_through_a_whole_batch(sql, acting, queue, consumer):
    reader = acting("reader")
    send(sql, queue, "a")
    tick(sql, queue)

    batch = reader.value("select pgque.next_batch(%s, 'reader')", [queue])

    assert [row[5] for row in reader.rows("select * from pgque.get_batch_events(%s)", [batch])] == ["a"]
    assert reader.value("select pgque.event_retry(%s, 1, 60)", [batch]) == 1
    assert reader.value("select pgque.ack(%s)", [batch]) == 1


def test_an_admin_creates_rotates_and_drops_queues(acting, queue):
    admin = acting("admin")
    admin.rows("select pgque.create_queue('of the admin')")

    admin.rows("update pgque.queue set queue_switch_time = now() - interval '1 day'")
    admin.rows("select pgque.maint_rotate_tables_step1('of the admin')")

    assert admin.value("select queue_cur_table from pgque.queue where queue_name = 'of the admin'") == 1
    admin.rows("select pgque.drop_queue('of the admin')")


def test_a_reader_may_read_tables_but_write_none(sql, acting, queue):
    reader = acting("reader")
    send(sql, queue, "a")
    table = sql.value("select pgque.current_event_table(%s)", [queue])

    assert reader.value(f"select ev_data from {table}") == "a"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.rows(f"delete from {table}")


@pytest.mark.parametrize("role", ["reader", "writer", "admin"])
def test_nobody_but_the_owner_uninstalls_or_calls_internals(acting, queue, role):
    actor = acting(role)

    for call in ("uninstall()", "_insert_events('q', 't', '{d}')", "_find_subscription('q', 'c')"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            actor.rows(f"select pgque.{call}")


def test_a_table_of_the_callers_own_does_not_shadow_the_engines(acting, queue):
    writer = acting("writer")
    writer.rows("reset role")
    writer.rows("create temp table queue (queue_name text)")
    writer.rows("create function pg_temp.now() returns timestamptz language sql as $$ select null::timestamptz $$")
    writer.rows("set role pgque_writer")

    assert writer.value("select pgque.send(%s, 'a')", [queue]) == 1


def test_every_public_function_but_uninstall_is_granted_to_a_role(sql):
    ungranted = sql.rows(
        "select proname from pg_proc p where pronamespace = 'pgque'::regnamespace and proname not like '\\_%'"
        " and not exists (select from aclexplode(proacl) a where a.grantee <> proowner)"
    )

    assert ungranted == [("uninstall",)]

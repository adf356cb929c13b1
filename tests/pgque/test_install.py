"""Installing, installing again, uninstalling."""

import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.pgque.conftest import VENDOR
from tests.support.engine import ack, payloads, receive, send, tick
from tests.support.sessions import Session
from tests.support.waiting import wait_until

SCRIPT = (VENDOR / "pgque.sql").read_text()

CATALOG = """
    select 'function', p.oid::regprocedure::text, md5(pg_get_functiondef(p.oid)), p.proacl::text
    from pg_proc p where pronamespace = 'pgque'::regnamespace
    union all
    select 'column', a.attrelid::regclass || '.' || attname, format_type(atttypid, atttypmod) || attnotnull,
        coalesce(relacl::text, '')
    from pg_attribute a join pg_class c on c.oid = attrelid
    where relnamespace = 'pgque'::regnamespace and attnum > 0 and not attisdropped
    union all
    select 'constraint', conname, pg_get_constraintdef(oid), ''
    from pg_constraint where connamespace = 'pgque'::regnamespace
    order by 1, 2
"""


def install(url):
    with psycopg.connect(url) as connection:
        connection.execute(SCRIPT)


def test_the_built_file_is_fresh():
    result = subprocess.run([sys.executable, VENDOR / "build.py", "--check"], capture_output=True, text=True)

    assert result.returncode == 0, "a file in vendor/pgque/src was changed; run `make build-sql`"


def test_the_engine_says_its_version(sql):
    assert sql.value("select pgque.version()") == "0.2.2"
    assert sql.value("select pgque.engine_version()") == (VENDOR / "VERSION").read_text().strip()


def test_installing_again_changes_nothing(make_database):
    url = make_database()
    install(url)
    with Session(url, autocommit=True) as sql:
        first = sql.rows(CATALOG)

        install(url)

        assert sql.rows(CATALOG) == first


def test_installing_again_leaves_the_functions_that_sessions_run(make_database):
    url = make_database()
    functions = "select oid, proname from pg_proc where pronamespace = 'pgque'::regnamespace order by 1"
    install(url)
    with Session(url, autocommit=True) as sql:
        first = sql.rows(functions)

        install(url)

        assert sql.rows(functions) == first


def test_installing_over_an_earlier_version_equals_a_first_installation(make_database):
    url = make_database()
    install(url)
    with Session(url, autocommit=True) as sql:
        fresh = sql.rows(CATALOG)
        sql.rows("select pgque.create_queue('q')")
        sql.rows("create or replace function pgque.engine_version() returns text language sql as $$ select '1.0.0' $$")
        sql.rows("drop view pgque._window cascade")
        sql.rows("create type pgque._window as (batch_id bigint)")
        sql.rows("create function pgque._of_before(pgque._window) returns int language sql as 'select 1'")

        install(url)

        sql.rows("select pgque.drop_queue('q')")
        assert sql.rows(CATALOG) == fresh


@pytest.mark.parametrize(
    "work",
    [
        "select pgque.maint_rotate_tables_step1('q')",
        "select count(*) from pgque.receive('q', 'c'); select count(*) from pgque.receive('q', 'c')",
        "select pgque.force_next_tick('q'); select pgque.ticker()",
        "select pgque.create_queue('other')",
    ],
)
def test_installing_again_waits_for_open_work_and_ends(make_database, work):
    url = make_database()
    install(url)
    with Session(url, autocommit=True) as sql, Session(url) as working, ThreadPoolExecutor() as pool:
        sql.rows("select pgque.create_queue('q'), pgque.subscribe('q', 'c')")
        sql.rows("update pgque.queue set queue_switch_time = '2000-01-01'")
        send(sql, "q", "a")
        tick(sql, "q")
        for statement in work.split("; "):
            working.rows(statement)

        installing = pool.submit(install, url)
        wait_until(lambda: sql.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") == 1, 20)
        working.commit()
        installing.result()

        assert sql.value("select pgque.send('q', 'b')")


def test_installing_again_keeps_data_cursors_and_open_batches(make_database):
    url = make_database()
    install(url)
    with Session(url, autocommit=True) as sql:
        sql.rows("select pgque.create_queue('q')")
        sql.rows("select pgque.subscribe('q', 'c')")
        sql.rows("select pgque.set_tick_period_ms(50)")
        send(sql, "q", "a")
        tick(sql, "q")
        before = receive(sql, "q", "c")

        install(url)

        assert receive(sql, "q", "c") == before
        assert ack(sql, before[0][1]) == 1
        assert sql.rows("select tick_period_ms from pgque.config") == [(50,)]
        send(sql, "q", "b")
        tick(sql, "q")
        assert payloads(receive(sql, "q", "c")) == ["b"]


def test_a_plain_owner_installs_when_the_roles_are_there(url, make_database):
    owned = make_database()
    role = f"owner_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"create role {role} login")
        name = psycopg.conninfo.conninfo_to_dict(owned)["dbname"]
        connection.execute(f'alter database "{name}" owner to {role}')

    install(make_conninfo(owned, user=role))

    with Session(make_conninfo(owned, user=role), autocommit=True) as sql:
        sql.rows("select pgque.create_queue('q')")
        assert sql.value("select pgque.send('q', 'a')") == 1
        sql.rows("select pgque.uninstall()")
    with psycopg.connect(owned, autocommit=True) as connection:
        connection.execute(f"reassign owned by {role} to current_user")
        connection.execute(f"drop owned by {role}")
        connection.execute(f'alter database "{name}" owner to current_user')
        connection.execute(f"drop role {role}")


def test_several_databases_are_installed_at_once(make_database):
    urls = [make_database() for _ in range(3)]

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(install, urls))

    for url in urls:
        with Session(url) as sql:
            assert sql.value("select pgque.version()") == "0.2.2"


def test_uninstalling_leaves_nothing(make_database):
    url = make_database()
    with Session(url, autocommit=True) as sql:
        before = sql.value("select count(*) from pg_class") + sql.value("select count(*) from pg_proc")
        install(url)
        sql.rows("select pgque.create_queue('q')")

        sql.rows("select pgque.uninstall()")

        assert sql.value("select count(*) from pg_class") + sql.value("select count(*) from pg_proc") == before
        assert sql.value("select to_regnamespace('pgque')") is None


@pytest.mark.parametrize("second", ["insert into pgque.config (singleton) values (true)"])
def test_there_is_one_row_of_settings(sql, second):
    with pytest.raises(psycopg.errors.UniqueViolation):
        sql.rows(second)

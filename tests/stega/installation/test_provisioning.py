"""provision_roles on servers whose administrator is no superuser: what each kind of process may do, and may not."""

import psycopg
import pytest

from stega.installation.privileges import KINDS
from tests.stega.installation.managed import Installation
from tests.support import servers
from tests.support.processes import VARIABLES

PASSWORD = "a-password-of-the-web"
DDL = [
    "create table made (id int)",
    "create temporary table made (id int)",
    "create schema made",
    "create function made() returns int language sql as 'select 1'",
    "create view made as select 1",
    "create extension pg_trgm",
    "create role made",
]
ALTERATIONS = {
    "default": "alter table tickets_ticket add column made int",
    "jobs": "drop table django_q_ormq",
    "events": "drop function pgque.ack(bigint)",
}
CONNECTIONS = [(kind, alias) for kind in KINDS for alias in KINDS[kind]]


@pytest.fixture(scope="module")
def installation():
    made = Installation()
    made.provision(STEGA_WEB_DATABASE_PASSWORD=PASSWORD)
    yield made
    made.remove()


@pytest.mark.parametrize(("kind", "alias"), CONNECTIONS)
def test_no_kind_of_process_can_change_what_a_database_is_made_of(installation, kind, alias):
    with installation.connect(alias, installation.role(kind)) as connection:
        for statement in (*DDL, ALTERATIONS[alias]):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


@pytest.mark.parametrize(
    ("kind", "alias"), [(kind, alias) for kind in KINDS for alias in VARIABLES if alias not in KINDS[kind]]
)
def test_a_database_that_is_none_of_its_business_is_closed(installation, kind, alias):
    with pytest.raises(psycopg.OperationalError, match=r"permission denied|does not exist"):
        installation.connect(alias, installation.role(kind))


@pytest.mark.parametrize("kind", ["web", "monitor", "ticker", "tasks"])
def test_who_needs_no_payload_cannot_read_any(installation, kind):
    with installation.connect("events", installation.role(kind)) as connection:
        tables = connection.execute(
            "select oid::regclass::text from pg_class where relkind = 'r' and relname ~ '^event_|^retry_queue'"
        )
        calls = ["get_batch_events(1)", "receive('q', 'c', 1)", "dlq_inspect('q', 1)", "next_batch('q', 'c')"]
        reads = [f"select * from {table}" for (table,) in tables.fetchall()]

        assert len(reads) > 3
        for statement in (*reads, "select ev_data from pgque.dead_letter", *(f"select pgque.{call}" for call in calls)):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


@pytest.mark.parametrize("kind", ["web", "monitor"])
def test_the_state_of_the_event_log_is_seen_without_payloads(installation, kind):
    with installation.connect("events", installation.role(kind)) as connection:
        assert connection.execute("select queue_name from pgque.get_queue_info()").fetchall()
        assert connection.execute("select consumer_name from pgque.get_consumer_info()").fetchall()
        assert connection.execute("select dl_queue_id, count(dl_id) from pgque.dead_letter group by 1").fetchall() == []


def test_the_web_cannot_publish_and_the_task_worker_can(installation):
    publish = "select pgque.insert_event('stega.notifications', 'noted', '{}', 'key', null, null, null)"

    with (
        installation.connect("events", installation.role("web")) as web,
        installation.connect("events", installation.role("tasks")) as tasks,
    ):
        assert tasks.execute(publish).fetchone()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            web.execute(publish)


def test_the_console_reads_payloads_and_the_task_worker_mends_without_reading_any(installation):
    with (
        installation.connect("events", installation.role("console")) as console,
        installation.connect("events", installation.role("tasks")) as tasks,
    ):
        console.execute("select ev_data from pgque.dead_letter")
        console.execute("select ev_data from pgque.event_template")
        tasks.execute("select dl_id, dl_reason from pgque.dead_letter for update skip locked")
        tasks.execute("delete from pgque.dead_letter where dl_id = 0")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            console.execute("delete from pgque.dead_letter")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            tasks.execute("select ev_data from pgque.dead_letter")


def test_workers_write_the_ledger_and_neither_tickets_nor_sessions(installation):
    with installation.connect("default", installation.role("sla")) as worker:
        worker.execute("delete from notifications_delivery")
        worker.execute("select from tickets_ticket")
        for statement in (
            "delete from tickets_ticket",
            "update accounts_user set password = ''",
            "table django_session",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                worker.execute(statement)


@pytest.mark.parametrize("kind", ["notifications", "sla"])
def test_workers_read_of_people_what_a_mail_needs_and_no_password(installation, kind):
    with installation.connect("default", installation.role(kind)) as worker:
        worker.execute("select id, display_name, email, language from accounts_user")
        for statement in ("select password from accounts_user", "select last_login from accounts_user"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                worker.execute(statement)


def test_nobody_can_make_large_objects_once_an_administrator_has_done_what_the_command_says(installation):
    told = [line for line in installation.provision().splitlines() if "every role can make large objects" in line]
    for alias, line in zip(VARIABLES, told, strict=True):
        with psycopg.connect(servers.by_alias[alias].url(installation.name), autocommit=True) as superuser:
            superuser.execute(line.partition("does: ")[2])

    assert "large objects" not in installation.provision()
    for kind, alias in CONNECTIONS:
        with installation.connect(alias, installation.role(kind)) as connection:
            for call in ("lo_create(0)", "lo_creat(-1)", "lo_from_bytea(0, 'x')"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"select {call}")
    with installation.connect("default", installation.name) as owner, owner.transaction(force_rollback=True):
        owner.execute("revoke all on function lo_create(oid) from public")  # as restoring a dump does


def test_a_table_of_a_later_migration_is_open_at_once(installation):
    with installation.connect("default", installation.name) as owner:
        owner.execute("create table made_later (id bigint generated always as identity, word text)")

    with installation.connect("default", installation.role("web")) as web:
        web.execute("insert into made_later (word) values ('new')")
    with installation.connect("default", installation.role("notifications")) as worker:
        assert worker.execute("select word from made_later").fetchall() == [("new",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            worker.execute("delete from made_later")
    with installation.connect("default", installation.name) as owner:
        owner.execute("drop table made_later")


def test_the_second_time_changes_nothing(installation):
    installation.provision()
    before = installation.privileges()

    said = installation.provision(STEGA_WEB_DATABASE_PASSWORD="another")

    assert [line for line in said.splitlines() if "until an administrator does" not in line] == [
        f"provision_roles: {alias}: nothing to change" for alias in VARIABLES
    ]
    assert installation.privileges() == before


def test_who_watches_sees_others_where_the_owner_can_let_it_and_the_web_nowhere(installation):
    statement = "select pg_has_role(%s, 'pg_read_all_stats', 'member')"

    said = installation.provision()
    with installation.connect("default", installation.name) as owner:
        seeing = [owner.execute(statement, [installation.role(kind)]).fetchone()[0] for kind in ("monitor", "web")]
        may_grant_any_role = owner.info.server_version < 160000

    assert seeing == [True, False]
    told = f"events: {installation.role('monitor')} does not see old transactions of others until an administrator does"
    assert (told in said) is not may_grant_any_role
    assert "default: nothing to change" in said


def test_the_server_ends_what_a_request_or_a_task_has_given_up_and_nothing_of_other_workers(installation):
    limits = {}
    for kind in ("web", "console", "tasks", "notifications"):
        with installation.connect("default", installation.role(kind)) as connection:
            limits[kind] = connection.execute("show statement_timeout").fetchone()[0]

    assert limits == {"web": "11s", "console": "11s", "tasks": "41s", "notifications": "0"}


@pytest.mark.parametrize(("kind", "alias"), CONNECTIONS)
def test_the_server_looks_for_vanished_hosts_of_every_role(installation, kind, alias):
    with installation.connect(alias, installation.role(kind)) as connection:
        (settings,) = connection.execute(
            "select setconfig from pg_db_role_setting where setrole = current_user::regrole"
        ).fetchone()

    assert {"tcp_keepalives_idle=10", "tcp_user_timeout=20000"} <= set(settings)


def test_a_request_of_other_patience_changes_the_limit(installation):
    web, console = (installation.role(kind) for kind in ("web", "console"))

    said = installation.provision("--dry-run", STEGA_REQUEST_DATABASE_SECONDS="4")

    for role in (web, console):
        assert f'jobs: alter role "{role}" set statement_timeout=5000' in said


def test_what_was_given_by_hand_is_taken_back(installation):
    web = installation.role("web")
    with installation.connect("events", installation.name) as owner:
        owner.execute(f"grant select on pgque.dead_letter to {web}")
        owner.execute(f"grant execute on function pgque.dlq_purge(text, interval) to {web}")

    told = installation.provision("--dry-run")
    done = installation.provision()

    assert f'revoke select on table pgque.dead_letter from "{web}"' in told
    assert told == f"{done}provision_roles: nothing of this was done: --dry-run\n"
    assert "events: nothing to change" in installation.provision()


def test_a_right_to_pass_a_right_on_is_taken_back_alone(installation):
    web = installation.role("web")
    with installation.connect("default", installation.name) as owner:
        owner.execute(f"grant select on tickets_ticket to {web} with grant option")

    done = installation.provision()

    assert f'default: revoke grant option for select on table tickets_ticket from "{web}"' in done
    assert "default: nothing to change" in installation.provision()


EXCESS = {
    **{
        f"alter role {{web}} {attribute}": f"alter role {{web}} no{attribute}"
        for attribute in ("superuser", "createrole", "createdb", "bypassrls", "replication")
    },
    **{
        f"grant {group} to {{web}}": f"revoke {group} from {{web}}"
        for group in (
            *("pg_read_all_data", "pg_write_all_data", "pg_execute_server_program", "pg_read_server_files"),
            *("pg_read_all_stats", "pgque_reader", "pgque_writer", "pgque_admin", "{console}"),
        )
    },
    "grant {tasks} to {monitor}": "revoke {tasks} from {monitor}",
    "alter role {sla} noinherit; grant pgque_reader to {sla}": "revoke pgque_reader from {sla}",
    "grant pg_read_all_stats to {console}; grant pg_read_all_data to pg_read_all_stats": (
        "revoke pg_read_all_data from pg_read_all_stats"
    ),
}
"""What an administrator may have given to a kind of process by hand, and the remedy that is told."""

POSSESSIONS = {
    "create table public.made (); alter table public.made owner to {web}": "owns table made",
    "create function public.made() returns int return 1; alter function public.made() owner to {web}": (
        "owns function made()"
    ),
    "select lo_create(4711); alter large object 4711 owner to {monitor}": "owns large object 4711",
    "grant execute on function pg_read_file(text) to {web}": "was given rights on function pg_read_file(text)",
    "create schema elsewhere; create table elsewhere.made (); grant select on elsewhere.made to {web}": (
        "was given rights on table elsewhere.made"
    ),
}

TAKE_BACK = [
    *(remedy for remedy in EXCESS.values()),
    "revoke pg_read_all_stats from {console}",
    "alter role {sla} inherit",
    *("drop table public.made", "drop function public.made()", "select lo_unlink(4711)"),
    *("revoke execute on function pg_read_file(text) from {web}", "drop schema elsewhere cascade"),
]


@pytest.fixture(scope="module")
def refusals(installation):
    """What the command says when it is run, and run dry, while the roles have all that."""
    roles = {kind: installation.role(kind) for kind in KINDS}
    with psycopg.connect(servers.events.url(installation.name), autocommit=True) as superuser:
        for statement in (*EXCESS, *POSSESSIONS):
            superuser.execute(statement.format(**roles))
        try:
            return [installation.refused(*options) for options in ((), ("--dry-run",))]
        finally:
            for statement in TAKE_BACK:
                superuser.execute(statement.format(**roles))


@pytest.mark.parametrize("said", [*EXCESS.values(), *POSSESSIONS.values()])
def test_what_the_owner_cannot_take_back_is_refused_with_the_remedy(installation, refusals, said):
    roles = {kind: installation.role(kind) for kind in KINDS}

    assert said.format(**roles) in refusals[0]


def test_a_dry_run_refuses_in_the_same_words(refusals):
    assert refusals[1] == refusals[0]
    assert "Traceback" not in refusals[0]


def test_what_was_refused_is_accepted_once_the_remedies_are_applied(installation, refusals):
    assert "events: nothing to change" in installation.provision()


def test_an_owner_who_may_not_make_roles_is_told_what_an_administrator_must_do(installation):
    def let(may):
        for server in servers.by_alias.values():
            with psycopg.connect(server.url(), autocommit=True) as superuser:
                superuser.execute(f"alter role {installation.name} {may}")

    let("nocreaterole")
    try:
        again = installation.provision()
        with pytest.raises(AssertionError, match=r"on default there is no role other_web, .* make it as an admin"):
            installation.manage("provision_roles", "--prefix=other")
        with pytest.raises(AssertionError, match=r"may not set the password of \w+_web: do it as an admin") as refused:
            installation.provision("--reset-passwords", STEGA_WEB_DATABASE_PASSWORD="unheard-of")
    finally:
        let("createrole")

    assert "default: nothing to change" in again
    assert "Traceback" not in str(refused.value)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "monitor"])
def test_each_kind_can_tell_that_its_databases_are_prepared(installation, kind):
    question = ["pgque_status"] if kind == "ticker" else ["migrate", "--check"]
    urls = {VARIABLES[alias]: installation.url(alias, installation.role(kind)) for alias in VARIABLES}

    installation.manage(*question, **urls)


def test_a_password_is_neither_printed_nor_sent_as_it_is(installation):
    with psycopg.connect(servers.app.url(), autocommit=True) as superuser:
        superuser.execute("alter system set log_statement = 'all'")
        superuser.execute("select pg_reload_conf()")
    try:
        said = installation.provision("--reset-passwords", STEGA_WEB_DATABASE_PASSWORD="unheard-of", STEGA_DEBUG="1")
    finally:
        with psycopg.connect(servers.app.url(), autocommit=True) as superuser:
            superuser.execute("alter system reset log_statement")
            superuser.execute("select pg_reload_conf()")
            statement = "select rolpassword from pg_authid where rolname = %s"
            (verifier,) = superuser.execute(statement, [installation.role("web")]).fetchone()

    assert f"set the password of {installation.role('web')}" in said
    assert "unheard-of" not in said
    assert "unheard-of" not in servers.app.log.read_text()
    assert verifier.startswith("SCRAM-SHA-256$")


def test_roles_before_their_databases_are_prepared_give_the_remedy(installation):
    name = f"{installation.name}_empty"
    with psycopg.connect(servers.events.url(), autocommit=True) as superuser:
        superuser.execute(f"create database {name} owner {installation.name}")
    empty = servers.events.url(name).replace("//postgres@", f"//{installation.name}@")
    try:
        with pytest.raises(AssertionError, match=r"Run: python manage\.py pgque_bootstrap"):
            installation.provision(EVENTS_DATABASE_URL=empty)
    finally:
        with psycopg.connect(servers.events.url(), autocommit=True) as superuser:
            superuser.execute(f"drop database {name} with (force)")

"""Nobody relies on a session of the pool, and nobody leaves anything behind in one."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from django.db import connections
from django.utils import timezone

from accounts.models import User
from tests.factories import PASSWORD, make_product
from tests.processes.test_faults import PROCESSES
from tests.processes.test_story import open_a_ticket_that_breaches_its_sla
from tests.support import servers
from tests.support.browser import Browser
from tests.support.waiting import wait_until

ALIASES = ("default", "jobs", "events")
VISITORS = 6
PAGES = ["/tickets/", "/tickets/new/", "/admin/tickets/ticket/", "/admin/operations/"]


def test_visitors_at_once_get_their_pages_however_few_sessions_there_are(site, admin):
    for number in range(150):
        make_product(f"Shop {number}")
    User.objects.update(first_signed_in_at=timezone.now())

    def visit(number):
        person = Browser(site)
        person.sign_in(admin.username, PASSWORD)
        return Counter((path, person.get(path).status) for path in PAGES * 4)

    with ThreadPoolExecutor(VISITORS) as visitors:
        answers = sum(visitors.map(visit, range(VISITORS)), Counter())

    assert answers == {(path, 200): VISITORS * 4 for path in PAGES}


LEFT_BEHIND = """
    select 'setting ' || name || ' = ' || setting from pg_settings
    where source = 'session' and name not in (select unnest(%(tracked)s::text[]))
    union all select 'prepared statement ' || statement from pg_prepared_statements
    union all select 'cursor ' || statement from pg_cursors where name <> ''
    union all select 'channel ' || channel from pg_listening_channels() as channel
    union all select 'temporary ' || oid::regclass from pg_class where relpersistence = 't'
    union all select 'lock ' || locktype || coalesce(' ' || objid, '') from pg_locks
        where pid = pg_backend_pid() and locktype = 'advisory'
    union all select 'role ' || current_user where current_user <> session_user
"""
TRACKED = ["client_encoding", "DateStyle", "TimeZone", "standard_conforming_strings", "application_name"]
"""What the pooler itself sets anew for each client."""


def sessions_of(pooler, alias, size):
    """What is left in each session of the pool: as many clients as it has sessions look at once."""
    clients = [psycopg.connect(pooler.url(alias), prepare_threshold=None) for _ in range(size)]
    try:
        pids = {client.execute("select pg_backend_pid()").fetchone()[0] for client in clients}
        left = [row[0] for client in clients for row in client.execute(LEFT_BEHIND, {"tracked": TRACKED})]
    finally:
        for client in clients:
            client.close()
    assert len(pids) == size
    return left


def test_nothing_is_left_behind_in_any_session_of_the_pool(start, site, pooler, mailbox, slack, customer, admin):
    for command, saying in PROCESSES.items():
        start(command, saying=saying)
    open_a_ticket_that_breaches_its_sla(site, slack, customer)
    wait_until(lambda: len(mailbox.received) >= 2 and slack.received, timeout=30)

    left = {alias: sessions_of(pooler, alias, 2) for alias in ALIASES}

    assert left == {alias: [] for alias in ALIASES}


def test_a_setting_that_a_client_makes_for_a_transaction_is_gone_with_it(pooler):
    with psycopg.connect(pooler.url("events"), prepare_threshold=None) as client:
        client.execute("set local lock_timeout = 1234; set local statement_timeout = 4321")
        client.commit()

    assert sessions_of(pooler, "events", 2) == []


def test_what_looks_for_leftovers_finds_them(pooler):
    with psycopg.connect(pooler.url("events"), autocommit=True) as client:
        client.execute("set lock_timeout = 1234; listen nothing; select pg_advisory_lock(7)")

    assert len(sessions_of(pooler, "events", 2)) == 3


def test_every_client_has_its_own_name_time_zone_and_encoding(pooler):
    def client(name, zone):
        options = {"application_name": name, "autocommit": True}
        client = psycopg.connect(pooler.url("default"), **options)
        client.execute("select set_config('TimeZone', %s, false)", [zone])
        return client

    wanted = [(f"client {number}", zone) for number, zone in enumerate(["UTC", "Asia/Tokyo", "America/Sao_Paulo"] * 2)]
    clients = [client(*each) for each in wanted]
    question = "select current_setting('application_name'), current_setting('TimeZone')"
    told = [[client.execute(question).fetchone() for client in clients] for _ in range(5)]
    for each in clients:
        each.close()

    assert told == [wanted] * 5


def test_the_server_is_told_which_process_it_works_for(start, env):
    start("sla_breach_worker")

    def names():
        with connections["events"].cursor() as cursor:
            cursor.execute("select application_name from pg_stat_activity where datname = current_database()")
            return {row[0] for row in cursor.fetchall()}

    wait_until(lambda: "sla_breach_dispatcher" in names(), timeout=10)


@pytest.fixture
def lock_timeout_of_the_role():
    """What a role behind a pooler is given in place of what the processes otherwise set."""
    with psycopg.connect(servers.events.url(), autocommit=True) as superuser:
        superuser.execute("alter role postgres set lock_timeout = '1s'")
        yield
        superuser.execute("alter role postgres reset lock_timeout")


def test_a_lock_that_holds_the_event_log_up_is_waited_out_where_the_role_has_a_lock_timeout(
    lock_timeout_of_the_role, start
):
    ticker = start("pgque_ticker", saying="leads")
    with closing(connections["events"].copy()) as holder:
        holder.cursor().execute("begin; lock table pgque.tick in access exclusive mode")
        ticker.wait_for("lock timeout")

    ticker.wait_for("goes on after")

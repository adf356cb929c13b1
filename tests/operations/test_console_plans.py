"""No query of the console goes through a large table: each is explained while it runs on CONSOLE_ROWS rows in each.

`make bench-console` runs it on a million, prints what each page costs, and allows 100 ms a query.
"""

import json
import os
import re
import uuid
from datetime import timedelta

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from accounts.roles import Role
from operations import sampling
from operations.models import Kind, Sample
from stega.pgque import client, oversight
from tests.factories import make_user
from tests.support import emptying

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(databases=["default", "jobs", "events"]),
    pytest.mark.timeout(900),
]

ROWS = int(os.environ.get("CONSOLE_ROWS", "100000"))
IS_BENCH = "CONSOLE_ROWS" in os.environ
QUEUE = "test.plans"
KEY = "00000000-0000-4000-8000-%012d"
MOST_ROWS = 25_000
"""That a query may read: what counts and searches end at, and some more."""
LONGEST_SECONDS = 0.1

FILL = {
    "default": """
        insert into notifications_delivery (event_key, event_type, ticket_id, channel, recipient, address, state,
            attempts, reason, detail, message_id, created_at)
        select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'ticket.assigned', n %% 5000, 'email',
            'user:' || n %% 2000, 'person' || n %% 2000 || '@example.com',
            case when n %% 100 = 0 then 'failed' when n %% 1000 = 1 then 'pending' else 'sent' end,
            1, '', '', '', now() - n * interval '1 s'
        from generate_series(1, %(rows)s) n;
        insert into stega_outboxentry (key, task, args, created_at, relayed_at, done_at, failed_at,
            attempts, last_error)
        select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'publish_ticket_assigned', '[1]',
            now() - n * interval '1 s', now(), case when n > 200 then now() - n * interval '1 s' end,
            case when n <= 100 then now() - n * interval '1 s' end, 0, ''
        from generate_series(1, %(rows)s) n;
        analyze notifications_delivery, stega_outboxentry;
    """,
    "jobs": """
        insert into django_q_task (id, name, func, started, stopped, success, attempt_count)
        select md5(n::text), 'publish_ticket_assigned 00000000-0000-4000-8000-' || lpad(n::text, 12, '0'),
            'stega.outbox.perform', now() - n * interval '1 s', now() - n * interval '1 s', n %% 100 > 0, 1
        from generate_series(1, %(rows)s) n;
        insert into django_q_task (id, name, func, args, started, stopped, success, attempt_count)
        select 'shared' || n, 'publish_ticket_assigned of ' || 2 + n %% 49 || ' entries', 'stega.outbox.perform',
            'gASVCgAAAAAAAACMBGtleXOUhZQu',  -- a pickled tuple, as django-q2 keeps it
            now() - n * interval '1 s', now() - n * interval '1 s', n %% 100 > 0, 1
        from generate_series(1, %(rows)s) n;
        analyze django_q_task;
    """,
    "events": """
        insert into pgque.dead_letter (dl_queue_id, dl_consumer_id, dl_time, dl_reason, ev_id, ev_time, ev_txid,
            ev_retry, ev_type, ev_data, ev_extra1)
        select queue_id, co_id, now() - (%(rows)s - n) * interval '1 s',
            'email to user:' || n || ' given up: cause ' || chr(97 + n %% 20), n, now(), '3', 3,
            (array['ticket.assigned', 'ticket.resolved'])[1 + n %% 2], '{"title": "It is broken"}',
            '00000000-0000-4000-8000-' || lpad(n::text, 12, '0')
        from generate_series(1, %(rows)s) n, pgque.queue, pgque.consumer
        where queue_name = %(queue)s and co_name = (array['one', 'two'])[1 + n / 10 %% 2];
        insert into pgque.retry_queue (ev_retry_after, ev_queue, ev_id, ev_time, ev_owner, ev_retry, ev_type)
        select now() + n * interval '1 s', queue_id, n, now(), sub_id, 1, 'ticket.assigned'
        from generate_series(1, %(rows)s / 10) n, pgque.queue join pgque.subscription on sub_queue = queue_id
        where queue_name = %(queue)s;
        analyze pgque.dead_letter, pgque.retry_queue;
    """,
}


@pytest.fixture(scope="module")
def browser(django_db_setup, django_db_blocker):
    """An operator's, on tables of ROWS rows each, made once for this module."""
    with django_db_blocker.unblock():
        client.create_queue(QUEUE)
        for consumer in ("one", "two"):
            client.subscribe(QUEUE, consumer)
        for alias, sql in FILL.items():
            with connections[alias].cursor() as cursor:
                cursor.execute(sql.replace("%(rows)s", str(ROWS)).replace("%(queue)s", f"'{QUEUE}'").replace("%%", "%"))
        _sample_a_day()
        person = make_user("admin", Role.ADMIN, is_staff=True, is_superuser=True)
        browser = Client()
        browser.force_login(person)
        yield browser
        for alias in ("default", "jobs"):
            emptying.empty(alias)
        with connections["events"].cursor() as cursor:
            cursor.execute("delete from pgque.retry_queue")
            cursor.execute("select pgque.drop_queue(%s, true)", [QUEUE])


def _sample_a_day():
    now = timezone.now().replace(second=0, microsecond=0)
    names = [f"{sampling.EVENTS}{QUEUE}", f"{sampling.LAG}one", f"{sampling.DELIVERIES}told"]
    Sample.objects.bulk_create(
        Sample(at=now - timedelta(minutes=age), series=name, value=age) for age in range(10_000) for name in names
    )
    with connections["default"].cursor() as cursor:
        cursor.execute("analyze operations_sample")


GROUP = {"queue": QUEUE, "consumer": "one", "type": "ticket.assigned", "cause": "email to user:# given up: cause a"}
MIDDLE = (timezone.now() - timedelta(seconds=ROWS // 2)).isoformat()


def page(name, *args, **query):
    return f"{reverse(f'operations:{name}', args=args)}?{urlencode(query)}"


ADDRESSES = {
    "overview": lambda: page("overview"),
    "overview of a day": lambda: page("overview", span="day"),
    "queues": lambda: page("queues"),
    "consumers": lambda: page("consumers"),
    "retries": lambda: page("retries"),
    "retries, later": lambda: page("retries", after=f"{timezone.now().isoformat()}_1_1"),
    "groups": lambda: page("dead_letters"),
    "groups, the next": lambda: page("dead_letters", after=json.dumps([1, 1, "ticket.assigned", "x"])),
    "a group": lambda: page("dead_letter_group", **GROUP),
    "a group, older": lambda: page("dead_letter_group", **GROUP, before=_middle_letter()),
    "a letter": lambda: page("dead_letter", _middle_letter()),
    "question about a group": lambda: page("act", Kind.REPLAY_GROUP.value, **GROUP),
    "question about entries": lambda: page("act", Kind.RETRY_ENTRIES.value),
    "tasks": lambda: page("tasks"),
    "outbox": lambda: page("outbox"),
    "outbox, given up": lambda: page("outbox", state="given_up"),
    "outbox, done": lambda: page("outbox", state="done"),
    "outbox, done, older": lambda: page("outbox", state="done", before=f"{MIDDLE}_{ROWS // 2}"),
    "outbox, all": lambda: page("outbox", state="all"),
    "outbox by key": lambda: page("outbox", q=KEY % 500),
    "ledger": lambda: page("ledger"),
    "ledger, older": lambda: page("ledger", before=f"{MIDDLE}_{ROWS // 2}"),
    "ledger, failed": lambda: page("ledger", state="failed"),
    "ledger, pending": lambda: page("ledger", state="pending"),
    "ledger, sent": lambda: page("ledger", state="sent"),
    "ledger, not told": lambda: page("ledger", state="skipped"),
    "ledger by key": lambda: page("ledger", q=KEY % 500),
    "ledger by ticket": lambda: page("ledger", q="#12"),
    "ledger by recipient": lambda: page("ledger", q="user:12"),
    "ledger by address": lambda: page("ledger", q="admin@example.com"),
    "an event": lambda: page("event", uuid.UUID(KEY % 500)),
    "actions": lambda: page("actions"),
}


def _middle_letter():
    return oversight.oldest_dead_letters(GROUP, 2**62, 1)[0] + ROWS // 2


@pytest.mark.parametrize("name", ADDRESSES)
def test_no_query_goes_through_a_large_table(browser, name):
    address = ADDRESSES[name]()
    browser.get(address)

    queries = _queries(browser, address)

    greedy = [(read, sql) for alias, sql, _seconds in queries if (read := _most_read(_plan(alias, sql))) > MOST_ROWS]
    assert greedy == []
    _report(name, queries)


def _queries(browser, address):
    """What the page asks, with the seconds of each."""
    captures = {alias: CaptureQueriesContext(connections[alias]) for alias in ("default", "jobs", "events")}
    for capture in captures.values():
        capture.__enter__()
    status = browser.get(address).status_code
    for capture in captures.values():
        capture.__exit__(None, None, None)
    assert status in (200, 410)
    return [
        (alias, query["sql"], float(query["time"]))
        for alias, capture in captures.items()
        for query in capture.captured_queries
        if re.match(r"\s*(select|with)\b", query["sql"], re.IGNORECASE)
    ]


def _plan(alias, sql):
    with connections[alias].cursor() as cursor:
        cursor.execute("explain (analyze, timing off, format json) " + sql.replace("%", "%%"), [])
        return cursor.fetchone()[0][0]["Plan"]


def _most_read(plan):
    """The rows that the greediest node of the plan takes from a table or from another node."""
    read = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
    return max([read * plan["Actual Loops"], *map(_most_read, plan.get("Plans", ()))])


def _report(name, queries):
    slowest = max((seconds for _alias, _sql, seconds in queries), default=0.0)
    if IS_BENCH:
        print(f"{name:26} {len(queries):3} queries, slowest {slowest * 1000:6.1f} ms")  # noqa: T201 - the figures
        assert slowest < LONGEST_SECONDS, max(queries, key=lambda each: each[2])[1]

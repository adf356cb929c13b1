"""Facts are read by indexes, so that a million rows of history cost a scrape no more than a few."""

import json

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from operations import performing
from operations.facts import ledger, outbox, queues
from operations.facts.reading import read
from stega.pgque import client
from tests.support import emptying

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"])

ROWS = 50_000
QUEUE = "test.history"


def execute(alias, sql, params=()):
    with connections[alias].cursor() as cursor:
        cursor.execute(sql, params)


@pytest.fixture(scope="module")
def filled(django_db_setup, django_db_blocker):
    """What months leave behind, all of it closed; made once for this module."""
    with django_db_blocker.unblock():
        client.create_queue(QUEUE)
        client.subscribe(QUEUE, "audit")
        fill()
        yield
        emptying.empty("default")
        execute("events", "select pgque.drop_queue(%s, true)", [QUEUE])


def fill():
    execute(
        "default",
        "insert into notifications_delivery (event_key, event_type, channel, recipient, address, state, attempts,"
        " reason, detail, message_id, created_at)"
        " select gen_random_uuid(), 'x', 'email', 'user:1', '', 'sent', 1, '', '', '', now() - make_interval(mins => n)"
        " from generate_series(1, %s) n",
        [ROWS],
    )
    execute(
        "default",
        "insert into stega_outboxentry (key, task, args, attempts, last_error, done_at)"
        " select gen_random_uuid(), 'x', '[]', 0, '', now() from generate_series(1, %s)",
        [ROWS],
    )
    execute(
        "events",
        "insert into pgque.dead_letter (dl_queue_id, dl_consumer_id, dl_time, ev_id, ev_time)"
        " select queue_id, (select max(co_id) from pgque.consumer), now() - make_interval(mins => n), n, now()"
        " from pgque.queue, generate_series(1, %s) n where queue_name = %s",
        [ROWS, QUEUE],
    )
    for alias in ("default", "events"):
        execute(alias, "analyze")


@pytest.fixture
def history(filled, settings):
    settings.PGQUE_QUEUE = QUEUE


def scanned_whole(alias, sql):
    """The tables that the statement reads from end to end."""
    with connections[alias].cursor() as cursor:
        cursor.execute("explain (format json) " + sql.replace("%", "%%"), [])
        plan = cursor.fetchone()[0]
    nodes = [(plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"]]
    for node in nodes:
        nodes += node.get("Plans", [])
    return {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"}


@pytest.mark.parametrize("source", [ledger, outbox, queues], ids=lambda module: module.__name__)
def test_no_fact_reads_a_table_of_history_from_end_to_end(history, source):
    question = source.question()

    with CaptureQueriesContext(connections[question.alias]) as captured:
        assert read(question).value

    statements = [each["sql"] for each in captured if "select" in each["sql"].lower()]
    whole = set().union(*(scanned_whole(question.alias, sql) for sql in statements))
    assert whole & {"notifications_delivery", "stega_outboxentry", "dead_letter"} == set()


def test_resuming_what_was_left_reads_no_table_of_history_from_end_to_end(history):
    with CaptureQueriesContext(connections["default"]) as captured:
        performing.resume()

    statements = [each["sql"] for each in captured if "operations_operatoraction" in each["sql"]]
    assert statements
    assert set().union(*(scanned_whole("default", sql) for sql in statements)) & {"stega_outboxentry"} == set()

import re
from pathlib import Path

from stega.installation.privileges import KINDS, Grant, Thing, changes, wanted

ROOT = Path(__file__).resolve().parents[3]
OWNERS = {"create_queue", "set_queue_config", "force_next_tick", "send_batch", "unsubscribe", "dlq_inspect"}
"""Functions of the event log that no running process calls."""

THINGS = [
    Thing("database", "stega_app", "stega_app"),
    Thing("schema", "public", "public"),
    Thing("table", "tickets_ticket", "tickets_ticket"),
    Thing("table", "notifications_delivery", "notifications_delivery"),
    Thing("table", "django_session", "django_session"),
]


def test_each_role_gets_what_its_kind_needs_on_what_is_there():
    grants = {grant.sql() for grant in wanted("default", {"sla": "stega_sla"}, THINGS)}

    assert grants == {
        "grant connect on database stega_app to stega_sla",
        "grant usage on schema public to stega_sla",
        "grant select on table tickets_ticket to stega_sla",
        "grant select on table notifications_delivery to stega_sla",
        "grant insert on table notifications_delivery to stega_sla",
        "grant update on table notifications_delivery to stega_sla",
        "grant delete on table notifications_delivery to stega_sla",
        "alter default privileges in schema public grant select on tables to stega_sla",
    }


def test_a_kind_gets_nothing_in_a_database_it_does_not_use():
    assert wanted("jobs", {"ticker": "stega_ticker"}, THINGS) == set()


def test_what_is_too_much_is_taken_and_what_is_missing_given():
    kept, extra, missing = (Grant("web", privilege, "table", "a") for privilege in ("select", "delete", "insert"))

    assert changes({kept, extra}, {kept, missing}) == [
        "revoke delete on table a from web",
        "grant insert on table a to web",
    ]


def test_every_function_of_the_event_log_that_the_code_calls_is_given_to_a_kind_or_left_to_the_owner():
    called = set()
    for path in (ROOT / "stega" / "pgque").glob("*.py"):
        called |= set(re.findall(r"pgque\.([a-z_0-9]+)\(", path.read_text()))
    given = {name for rights in KINDS.values() if "events" in rights for name in rights["events"].functions}

    assert called - given - OWNERS == set()

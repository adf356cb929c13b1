"""What each kind of process may do in each database, and the difference to what it may do there now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

READ = ("select",)
WRITE = ("select", "insert", "update", "delete")
PUBLIC = "public"

LOOK = ("version", "engine_version", "get_queue_info", "get_consumer_info")
"""The event log's functions that tell its state and no payload."""

CONSUME = (
    *("next_batch", "next_batch_custom", "get_batch_info", "get_batch_events", "ack", "nack", "event_retry"),
    *("event_dead", "insert_event"),  # a member that is not the first to see an event may send it anew
)
JOIN = ("subscribe_subconsumer", "touch_subconsumer", "unsubscribe_subconsumer")
TICK = (
    *("ticker", "maint", "maint_retry_events", "maint_rotate_tables_step1", "maint_rotate_tables_step2"),
    "unsubscribe_subconsumer",
)
_EVENT = ("ev_id", "ev_time", "ev_retry", "ev_type", "ev_extra1")
STATE = {
    **dict.fromkeys(("pgque.queue", "pgque.consumer", "pgque.subscription", "pgque.tick"), READ),
    "pgque.dead_letter": tuple(
        f"select ({column})" for column in ("dl_id", "dl_queue_id", "dl_consumer_id", "dl_time", *_EVENT)
    ),
    "pgque.retry_queue": tuple(f"select ({column})" for column in ("ev_queue", "ev_owner", "ev_retry_after", *_EVENT)),
}
"""The event log's tables, without the columns that hold payloads or words about them."""

MEND = {**STATE, "pgque.dead_letter": (*STATE["pgque.dead_letter"], "select (dl_reason)", "update (dl_id)", "delete")}
"""Dead letters are locked by their id, then replayed or deleted: what operators ask for, the task worker does."""


@dataclass(frozen=True)
class Rights:
    """In one database: privileges on tables by a pattern of their names, and functions of the event log."""

    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    later_tables: tuple[str, ...] = ()
    """Privileges on tables that the owner makes later, until the command runs again."""


_ALL_TABLES = Rights({"django_migrations": READ, "*": WRITE}, later_tables=WRITE)
_PERSON = ("id", "username", "display_name", "email", "role", "is_active", "language", "time_zone")
"""What is asked of people to tell them something: neither their password nor when they were here."""

_WORKER = Rights(
    {
        "accounts_user": tuple(f"select ({column})" for column in _PERSON),
        **dict.fromkeys(("notifications_*", "stega_messageinhand", "stega_sharedsetting"), WRITE),
        **dict.fromkeys(("tickets_*", "stega_*", "django_migrations"), READ),
    },
    later_tables=READ,
)
_LIMIT = {"pgque.queue": ("select (queue_name)", "select (queue_max_retries)")}
"""How often a queue delivers an event again."""
_BOOKS = dict.fromkeys(("stega_*", "notifications_*", "operations_*", "django_migrations"), READ)

KINDS: Mapping[str, Mapping[str, Rights]] = {
    "web": {"default": _ALL_TABLES, "jobs": _ALL_TABLES, "events": Rights(STATE, LOOK)},
    "console": {
        "default": _ALL_TABLES,
        "jobs": _ALL_TABLES,
        "events": Rights({"pgque.*": READ}, LOOK, later_tables=READ),
    },
    "tasks": {
        "default": _ALL_TABLES,
        "jobs": _ALL_TABLES,
        "events": Rights(MEND, (*LOOK, "insert_event", "dlq_replay")),
    },
    "ticker": {
        # maint_rotate_tables_step2() works with the rights of its caller
        "events": Rights(
            {"pgque.queue": ("select (queue_switch_step2)", "update (queue_switch_step2)")}, (*LOOK, *TICK)
        ),
    },
    "notifications": {"default": _WORKER, "events": Rights(_LIMIT, (*LOOK, *CONSUME, "subscribe"))},
    "sla": {"default": _WORKER, "events": Rights(_LIMIT, (*LOOK, *CONSUME, *JOIN))},
    "monitor": {"default": Rights(_BOOKS), "jobs": Rights({"*": READ}), "events": Rights(STATE, LOOK)},
}
"""Kind of process -> alias -> rights. An alias that is missing is none of its business: it cannot connect there."""

WATCHING = ("console", "monitor")
"""Kinds that look for old transactions of others, and so are members of pg_read_all_stats where that can be given.

The statements they then see hold values: not for the web.
"""

SERVING = ("web", "console")
"""Kinds that answer requests: what one of them has given up, the server is to end."""


class Grant(NamedTuple):
    """One privilege of one role on one object; `target` as SQL writes it."""

    role: str
    privilege: str
    kind: str
    target: str

    def sql(self, verb: str = "grant") -> str:
        towards = "to" if verb == "grant" else "from"
        if self.kind.startswith("default "):
            kind = self.kind.removeprefix("default ")
            return (
                f"alter default privileges in schema {self.target} {verb} {self.privilege} on {kind} "
                f"{towards} {self.role}"
            )
        return f"{verb} {self.privilege} on {self.kind} {self.target} {towards} {self.role}"


class Thing(NamedTuple):
    """An object of a database: its kind, its name without arguments, and how SQL writes it."""

    kind: str
    name: str
    target: str


def wanted(alias: str, roles: Mapping[str, str], things: Iterable[Thing]) -> set[Grant]:
    """Every privilege that the roles (by kind) shall have in this database, which holds these things."""
    things = list(things)
    grants: set[Grant] = set()
    for kind, role in roles.items():
        rights = KINDS[kind].get(alias)
        if rights is not None:
            grants |= {grant for thing in things for grant in _on_thing(role, rights, thing)}
            grants |= set(_on_later_things(role, rights, things))
    return grants


def _on_thing(role: str, rights: Rights, thing: Thing) -> Iterable[Grant]:
    if thing.kind == "database":
        privileges: tuple[str, ...] = ("connect",)
    elif thing.kind == "schema":
        privileges = ("usage",)
    elif thing.kind == "function":
        privileges = ("execute",) if thing.name.removeprefix("pgque.") in rights.functions else ()
    elif thing.kind == "table":
        privileges = _on_table(rights, thing.name)
    else:
        privileges = ("usage",) if "insert" in rights.later_tables else ()
    return (Grant(role, privilege, thing.kind, thing.target) for privilege in privileges)


def _on_table(rights: Rights, name: str) -> tuple[str, ...]:
    """Those of the first pattern that fits."""
    return next((privileges for pattern, privileges in rights.tables.items() if fnmatchcase(name, pattern)), ())


def _on_later_things(role: str, rights: Rights, things: Iterable[Thing]) -> Iterable[Grant]:
    for schema in (thing for thing in things if thing.kind == "schema"):
        yield from (Grant(role, privilege, "default tables", schema.target) for privilege in rights.later_tables)
        if "insert" in rights.later_tables:
            yield Grant(role, "usage", "default sequences", schema.target)


def changes(actual: set[Grant], wanted: set[Grant]) -> list[str]:
    """The statements that make the one of the other: what is too much goes first."""
    too_much = sorted(actual - wanted)
    return [grant.sql("revoke") for grant in too_much] + [grant.sql() for grant in sorted(wanted - actual)]

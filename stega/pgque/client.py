"""What processes ask of the event log, one method per SQL function: no policy. Operators' own is in oversight.py.

Works on the alias `events`, in autocommit unless the caller opened atomic(using="events"). Raises what Django raises:
OperationalError or InterfaceError when the database is away, other DatabaseErrors for what the engine refuses.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connections, transaction

from stega.pgque import query
from stega.pgque.query import ALIAS

_UNFLUSHED = " from set_config('synchronous_commit', 'off', true)"
"""Lets this one transaction commit before it is on disk: for work that is merely done again when a crash of the server
takes it back (a tick, a finished batch). Never for an event, which nobody would send again, nor for the opening of a
batch: its number would go to another batch, which whoever works under it would finish."""


class BatchGone(Exception):
    """The batch is no longer this caller's: it was finished, or taken over under a new id."""


@dataclass(frozen=True, slots=True)
class Event:
    """A row of `pgque.get_batch_events`."""

    id: int
    created_at: datetime
    txid: int
    retry_count: int
    type: str
    data: str | None
    extra1: str | None
    extra2: str | None
    extra3: str | None
    extra4: str | None


def insert_event(queue: str, event_type: str, payload: dict[str, Any], key: str) -> int:
    """Append one event, its key in `ev_extra1`; returns its id."""
    sql = "select pgque.insert_event(%s, %s, %s, %s, null, null, null)"
    return int(query.value(sql, [queue, event_type, json.dumps(payload, ensure_ascii=False, allow_nan=False), key]))


def send_batch(queue: str, event_type: str, payloads: Sequence[str]) -> list[int]:
    return list(query.value("select pgque.send_batch(%s, %s, %s::text[])", [queue, event_type, list(payloads)]))


def subscribe(queue: str, consumer: str) -> int:
    return int(query.value("select pgque.subscribe(%s, %s)", [queue, consumer]))


def unsubscribe(queue: str, consumer: str) -> int:
    return int(query.value("select pgque.unsubscribe(%s, %s)", [queue, consumer]))


def subscribe_subconsumer(queue: str, consumer: str, subconsumer: str) -> int:
    """Join a cooperative group; a plain consumer of that name becomes the group and keeps its cursor."""
    return int(query.value("select pgque.subscribe_subconsumer(%s, %s, %s, true)", [queue, consumer, subconsumer]))


def unsubscribe_subconsumer(queue: str, consumer: str, subconsumer: str) -> int:
    """Leave the group; what is left of an open batch goes to the retry queue."""
    return int(query.value("select pgque.unsubscribe_subconsumer(%s, %s, %s, 1)", [queue, consumer, subconsumer]))


def touch_subconsumer(queue: str, consumer: str, subconsumer: str) -> int:
    return int(query.value("select pgque.touch_subconsumer(%s, %s, %s)", [queue, consumer, subconsumer]))


def next_batch(queue: str, consumer: str) -> int | None:
    """The open batch, or the next one; None when there is no newer tick."""
    batch: int | None = query.value_alone("select pgque.next_batch(%s, %s)", [queue, consumer])
    return batch


def next_batch_coop(queue: str, consumer: str, subconsumer: str, dead_interval: timedelta) -> int | None:
    """The member's open batch, a silent member's batch under a new id, or the next one; None when there is none."""
    sql = "select pgque.next_batch(%s, %s, %s, %s)"
    batch: int | None = query.value_alone(sql, [queue, consumer, subconsumer, dead_interval])
    return batch


def open_batch(queue: str, consumer: str) -> int | None:
    """The batch that the consumer has open, whoever opened it."""
    batch: int | None = query.value("select current_batch from pgque.get_consumer_info(%s, %s)", [queue, consumer])
    return batch


def batch_end(batch: int) -> int:
    """The tick that ends the batch's window, which stays the same when the batch is taken over."""
    return int(query.value("select tick_id from pgque.get_batch_info(%s)", [batch]) or 0)


def silent_windows(queue: str, consumer: str, silence: timedelta) -> list[int]:
    """The ends of the windows whose members have given no sign of life for so long."""
    sql = """
        select array_agg(next_tick)
        from pgque.get_consumer_info(%s)
        where starts_with(consumer_name, %s || '.') and current_batch is not null and last_seen >= %s
    """
    return query.value(sql, [queue, consumer, silence]) or []


def batch_events(batch: int, page: int) -> Iterator[Event]:
    """Every event of the batch, in pages of `page` through a held cursor: bounded memory, no transaction held.

    A pooler in transaction mode cannot hold a cursor: there each page is a query of its own.
    """
    if settings.EVENTS_POOLED:
        yield from _batch_events_by_query(batch, page)
        return
    with connections[ALIAS].chunked_cursor() as cursor:
        cursor.execute("select * from pgque.get_batch_events(%s)", [batch])
        while rows := cursor.fetchmany(page):
            for id, created_at, txid, retry, *rest in rows:
                yield Event(id, created_at, txid, retry or 0, *rest)


def _batch_events_by_query(batch: int, page: int) -> Iterator[Event]:
    last_id, is_more = 0, True
    while is_more:
        sql = "select * from pgque.get_batch_events(%s) where ev_id > %s order by ev_id limit %s"
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(sql, [batch, last_id, page])
            rows = cursor.fetchall()
        for id, created_at, txid, retry, *rest in rows:
            yield Event(id, created_at, txid, retry or 0, *rest)
            last_id = id
        is_more = len(rows) == page


def ack(batch: int) -> int:
    """Finish the whole batch; 0 when it was taken over meanwhile."""
    return int(query.value("select pgque.ack(%s)" + _UNFLUSHED, [batch]))


def nack(batch: int, event_id: int, retry_after: timedelta, reason: str) -> int:
    """Ask for the event again later. The batch's ack is still due. Raises BatchGone."""
    sql = """
        select pgque.nack(
            %s, row(%s, null, null, null, null, null, null, null, null, null)::pgque.message, %s, %s
        )
    """
    with _noticing_a_lost_batch():
        return int(query.value(sql, [batch, event_id, retry_after, reason]))


def event_retry(batch: int, event_id: int, seconds: int) -> int:
    """Ask for the event again later, however often it has come. The batch's ack is still due. Raises BatchGone."""
    with _noticing_a_lost_batch():
        return int(query.value("select pgque.event_retry(%s, %s, %s)", [batch, event_id, seconds]))


def event_dead(batch: int, event: Event, reason: str) -> int:
    """Dead-letter the event at once. The batch's ack is still due. Raises BatchGone."""
    sql = "select pgque.event_dead(%s, %s, %s, %s, %s::text::xid8, %s, %s, %s, %s, %s, %s, %s)"
    values = [batch, event.id, reason, event.created_at, event.txid, event.retry_count, event.type, event.data]
    with _noticing_a_lost_batch():
        return int(query.value(sql, [*values, event.extra1, event.extra2, event.extra3, event.extra4]))


def ticker() -> int:
    """Tick every queue that is due; returns how many got a tick."""
    return int(query.value_alone("select pgque.ticker()" + _UNFLUSHED))


def tick(queue: str) -> int | None:
    """Tick one queue if it is due; returns the new tick. Refuses queues that are paused or ticked by others."""
    number: int | None = query.value_alone("select pgque.ticker(%s)" + _UNFLUSHED, [queue])
    return number


def force_next_tick(queue: str) -> int:
    return int(query.value("select pgque.force_next_tick(%s)", [queue]))


def maint() -> int:
    return int(query.value("select pgque.maint()"))


def maint_rotate_tables_step1(queue: str) -> int:
    return int(query.value("select pgque.maint_rotate_tables_step1(%s)", [queue]))


def maint_retry_events() -> int:
    """Move due retries back into their queues; returns how many, 0 when none is due."""
    return int(query.value("select pgque.maint_retry_events()" + _UNFLUSHED))


def maint_rotate_tables_step2() -> int:
    return int(query.value("select pgque.maint_rotate_tables_step2()"))


def create_queue(queue: str) -> int:
    return int(query.value("select pgque.create_queue(%s)", [queue]))


def set_queue_config(queue: str, parameter: str, value: str) -> int:
    return int(query.value("select pgque.set_queue_config(%s, %s, %s)", [queue, parameter, value]))


def max_retries(queue: str) -> int:
    """How often the queue delivers an event again that was nacked each time, before it is a dead letter."""
    sql = "select coalesce(max(queue_max_retries), 5) from pgque.queue where queue_name = %s"
    return int(query.value(sql, [queue]))


def queue_info() -> list[dict[str, Any]]:
    """Settings and state of every queue; `switch_age` is the time since its last rotation on the database's clock."""
    return query.rows("select *, now() - queue_switch_time as switch_age from pgque.get_queue_info()")


def consumer_info() -> list[dict[str, Any]]:
    return query.rows("select * from pgque.get_consumer_info()")


def version() -> str | None:
    """The PgQue API version of the installed engine; None when none is installed."""
    return query.value("select pgque.version()") if _installed("version") else None


def engine_version() -> str | None:
    """The version of our own engine; None when another or none is installed."""
    return query.value("select pgque.engine_version()") if _installed("engine_version") else None


def install(script: str) -> None:
    """Run an engine's install script in one transaction; this connection's role owns what it makes."""
    with transaction.atomic(using=ALIAS), connections[ALIAS].cursor() as cursor:
        cursor.execute(script)


def mark_script(checksum: str) -> None:
    """Note on the installed engine which script it came from."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("comment on schema pgque is %s", [checksum])


def marked_script() -> str | None:
    """What `mark_script` noted; another text when it noted nothing, None when no engine is installed."""
    text: str | None = query.value("select obj_description(to_regnamespace('pgque'), 'pg_namespace')")
    return text


@contextmanager
def install_lock() -> Iterator[None]:
    """One installer at a time, for the length of a transaction."""
    with transaction.atomic(using=ALIAS):
        query.value("select pg_advisory_xact_lock(hashtext('pgque_bootstrap'))")
        yield


@contextmanager
def _noticing_a_lost_batch() -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        if "batch not found" in str(error):
            raise BatchGone from error
        raise


def _installed(function: str) -> bool:
    sql = "select exists (select from pg_proc p join pg_namespace n on n.oid = p.pronamespace"
    return bool(query.value(sql + " where n.nspname = 'pgque' and p.proname = %s)", [function]))

"""The event log's SQL, one method per function: no policy, no other module holds `pgque.` SQL.

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

ALIAS = "events"

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
    return int(_value(sql, [queue, event_type, json.dumps(payload, ensure_ascii=False, allow_nan=False), key]))


def send_batch(queue: str, event_type: str, payloads: Sequence[str]) -> list[int]:
    return list(_value("select pgque.send_batch(%s, %s, %s::text[])", [queue, event_type, list(payloads)]))


def subscribe(queue: str, consumer: str) -> int:
    return int(_value("select pgque.subscribe(%s, %s)", [queue, consumer]))


def unsubscribe(queue: str, consumer: str) -> int:
    return int(_value("select pgque.unsubscribe(%s, %s)", [queue, consumer]))


def subscribe_subconsumer(queue: str, consumer: str, subconsumer: str) -> int:
    """Join a cooperative group; a plain consumer of that name becomes the group and keeps its cursor."""
    return int(_value("select pgque.subscribe_subconsumer(%s, %s, %s, true)", [queue, consumer, subconsumer]))


def unsubscribe_subconsumer(queue: str, consumer: str, subconsumer: str) -> int:
    """Leave the group; what is left of an open batch goes to the retry queue."""
    return int(_value("select pgque.unsubscribe_subconsumer(%s, %s, %s, 1)", [queue, consumer, subconsumer]))


def touch_subconsumer(queue: str, consumer: str, subconsumer: str) -> int:
    return int(_value("select pgque.touch_subconsumer(%s, %s, %s)", [queue, consumer, subconsumer]))


def next_batch(queue: str, consumer: str) -> int | None:
    """The open batch, or the next one; None when there is no newer tick."""
    batch: int | None = _value_alone("select pgque.next_batch(%s, %s)", [queue, consumer])
    return batch


def next_batch_coop(queue: str, consumer: str, subconsumer: str, dead_interval: timedelta) -> int | None:
    """The member's open batch, a silent member's batch under a new id, or the next one; None when there is none."""
    sql = "select pgque.next_batch(%s, %s, %s, %s)"
    batch: int | None = _value_alone(sql, [queue, consumer, subconsumer, dead_interval])
    return batch


def open_batch(queue: str, consumer: str) -> int | None:
    """The batch that the consumer has open, whoever opened it."""
    batch: int | None = _value("select current_batch from pgque.get_consumer_info(%s, %s)", [queue, consumer])
    return batch


def batch_end(batch: int) -> int:
    """The tick that ends the batch's window, which stays the same when the batch is taken over."""
    return int(_value("select tick_id from pgque.get_batch_info(%s)", [batch]) or 0)


def silent_windows(queue: str, consumer: str, silence: timedelta) -> list[int]:
    """The ends of the windows whose members have given no sign of life for so long."""
    sql = """
        select array_agg(next_tick)
        from pgque.get_consumer_info(%s)
        where starts_with(consumer_name, %s || '.') and current_batch is not null and last_seen >= %s
    """
    return _value(sql, [queue, consumer, silence]) or []


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
    return int(_value("select pgque.ack(%s)" + _UNFLUSHED, [batch]))


def nack(batch: int, event_id: int, retry_after: timedelta, reason: str) -> int:
    """Ask for the event again later. The batch's ack is still due. Raises BatchGone."""
    sql = """
        select pgque.nack(
            %s, row(%s, null, null, null, null, null, null, null, null, null)::pgque.message, %s, %s
        )
    """
    with _noticing_a_lost_batch():
        return int(_value(sql, [batch, event_id, retry_after, reason]))


def event_retry(batch: int, event_id: int, seconds: int) -> int:
    """Ask for the event again later, however often it has come. The batch's ack is still due. Raises BatchGone."""
    with _noticing_a_lost_batch():
        return int(_value("select pgque.event_retry(%s, %s, %s)", [batch, event_id, seconds]))


def event_dead(batch: int, event: Event, reason: str) -> int:
    """Dead-letter the event at once. The batch's ack is still due. Raises BatchGone."""
    sql = "select pgque.event_dead(%s, %s, %s, %s, %s::text::xid8, %s, %s, %s, %s, %s, %s, %s)"
    values = [batch, event.id, reason, event.created_at, event.txid, event.retry_count, event.type, event.data]
    with _noticing_a_lost_batch():
        return int(_value(sql, [*values, event.extra1, event.extra2, event.extra3, event.extra4]))


def ticker() -> int:
    """Tick every queue that is due; returns how many got a tick."""
    return int(_value_alone("select pgque.ticker()" + _UNFLUSHED))


def tick(queue: str) -> int | None:
    """Tick one queue if it is due; returns the new tick. Refuses queues that are paused or ticked by others."""
    number: int | None = _value_alone("select pgque.ticker(%s)" + _UNFLUSHED, [queue])
    return number


def force_next_tick(queue: str) -> int:
    return int(_value("select pgque.force_next_tick(%s)", [queue]))


def maint() -> int:
    return int(_value("select pgque.maint()"))


def maint_rotate_tables_step1(queue: str) -> int:
    return int(_value("select pgque.maint_rotate_tables_step1(%s)", [queue]))


def maint_retry_events() -> int:
    """Move due retries back into their queues; returns how many, 0 when none is due."""
    return int(_value("select pgque.maint_retry_events()" + _UNFLUSHED))


def maint_rotate_tables_step2() -> int:
    return int(_value("select pgque.maint_rotate_tables_step2()"))


def create_queue(queue: str) -> int:
    return int(_value("select pgque.create_queue(%s)", [queue]))


def set_queue_config(queue: str, parameter: str, value: str) -> int:
    return int(_value("select pgque.set_queue_config(%s, %s, %s)", [queue, parameter, value]))


def queue_info() -> list[dict[str, Any]]:
    """Settings and state of every queue; `switch_age` is the time since its last rotation on the database's clock."""
    return _rows("select *, now() - queue_switch_time as switch_age from pgque.get_queue_info()")


def consumer_info() -> list[dict[str, Any]]:
    return _rows("select * from pgque.get_consumer_info()")


def queue_space(limit: int, newer_than: timedelta) -> list[dict[str, Any]]:
    """What each queue keeps: bytes of its event tables, retries, dead letters. Counts end at `limit`.

    The orders in it make every count go by an index, also for a queue that has little beside one that has much.
    """
    sql = """
        select q.queue_name,
            (select sum(pg_total_relation_size(to_regclass(q.queue_data_pfx || '_' || n)))::bigint
             from generate_series(0, q.queue_ntables - 1) n) as bytes,
            (select count(*) from (
                select from pgque.subscription s
                cross join lateral (
                    select from pgque.retry_queue r where r.ev_owner = s.sub_id order by r.ev_owner, r.ev_id limit %s
                ) r
                where s.sub_queue = q.queue_id and s.sub_role <> 'coop_member' limit %s
            ) r) as retries,
            (select count(*) from (
                select from pgque.dead_letter where dl_queue_id = q.queue_id order by dl_queue_id, dl_time limit %s
            ) d) as dead_letters,
            (select count(*) from (
                select from pgque.dead_letter where dl_queue_id = q.queue_id and dl_time > now() - %s
                order by dl_queue_id, dl_time limit %s
            ) d) as new_dead_letters,
            (select max(dl_time) from pgque.dead_letter where dl_queue_id = q.queue_id) as last_dead_letter_at
        from pgque.queue q
        order by q.queue_name
    """
    return _rows(sql, [limit, limit, limit, newer_than, limit])


def consumer_places() -> list[dict[str, Any]]:
    """Role of every consumer, and for how long the first tick after its cursor has waited for it."""
    sql = """
        select q.queue_name, c.co_name as consumer_name, s.sub_role as role,
            (select now() - t.tick_time from pgque.tick t
             where t.tick_queue = s.sub_queue and t.tick_id > s.sub_last_tick
             order by t.tick_id limit 1) as waiting
        from pgque.subscription s
        join pgque.queue q on q.queue_id = s.sub_queue
        join pgque.consumer c on c.co_id = s.sub_consumer
    """
    return _rows(sql)


def dead_letters(queue: str, limit: int = 100) -> list[dict[str, Any]]:
    return _rows("select * from pgque.dlq_inspect(%s, %s)", [queue, limit])


def has_cause_index() -> bool:
    """Whether the engine has the index that dead letters are grouped by: our own has, upstream's has not."""
    return bool(_value("select to_regclass('pgque.dl_cause_idx') is not null"))


_TYPE = "left(coalesce(ev_type, ''), 100)"

_CAUSE = r"""
    left(regexp_replace(coalesce(dl_reason, ''),
    '\S+@\S+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+', '#', 'g'), 200)
"""
"""What dead letters of one cause have in common: the reason without addresses, keys and numbers. As in dl_cause_idx."""

_GROUP = f"""
    dl_queue_id = (select queue_id from pgque.queue where queue_name = %(queue)s)
    and dl_consumer_id = (select co_id from pgque.consumer where co_name = %(consumer)s)
    and {_TYPE} = %(type)s and {_CAUSE} = %(cause)s
"""

_GROUP_KEY = f"dl_queue_id, dl_consumer_id, {_TYPE} as type, {_CAUSE} as cause"


def dead_letter_groups(after: Sequence[Any], limit: int, cap: int) -> list[dict[str, Any]]:
    """The next groups in the order of their keys, counted up to `cap`: one step in dl_cause_idx each (a loose scan)."""
    sql = f"""
        with recursive loose as (
            (select {_GROUP_KEY}, 1 as number from pgque.dead_letter
            where (dl_queue_id, dl_consumer_id, {_TYPE}, {_CAUSE}) > (%s, %s, %s, %s)
            order by 1, 2, 3, 4 limit 1)
            union all
            select n.* from loose l cross join lateral (
                select {_GROUP_KEY}, l.number + 1 from pgque.dead_letter
                where (dl_queue_id, dl_consumer_id, {_TYPE}, {_CAUSE})
                    > (l.dl_queue_id, l.dl_consumer_id, l.type, l.cause)
                order by 1, 2, 3, 4 limit 1
            ) n where l.number < %s
        )
        select l.dl_queue_id, l.dl_consumer_id, q.queue_name, c.co_name as consumer_name, l.type, l.cause,
            n.count, newest.dl_time as newest_at, newest.dl_reason as reason
        from loose l
        join pgque.queue q on q.queue_id = l.dl_queue_id
        join pgque.consumer c on c.co_id = l.dl_consumer_id
        cross join lateral (
            select count(*) from (
                select from pgque.dead_letter d
                where d.dl_queue_id = l.dl_queue_id and d.dl_consumer_id = l.dl_consumer_id
                    and {_TYPE} = l.type and {_CAUSE} = l.cause
                order by d.dl_id limit %s
            ) counted
        ) n
        cross join lateral (
            select d.dl_time, d.dl_reason from pgque.dead_letter d
            where d.dl_queue_id = l.dl_queue_id and d.dl_consumer_id = l.dl_consumer_id
                and {_TYPE} = l.type and {_CAUSE} = l.cause
            order by d.dl_id desc limit 1
        ) newest
        order by 1, 2, 5, 6
    """
    return _rows(sql, [*after, limit, cap])


def newest_dead_letter_groups(newest: int) -> list[dict[str, Any]]:
    """The groups of the `newest` dead letters, counted among these: what an engine without dl_cause_idx can tell."""
    sql = f"""
        select dl_queue_id, dl_consumer_id, queue_name, consumer_name, type, cause, count(*) as count,
            max(dl_time) as newest_at, (array_agg(dl_reason order by dl_id desc))[1] as reason
        from (
            select {_GROUP_KEY}, dl_id, dl_time, dl_reason from pgque.dead_letter order by dl_id desc limit %s
        ) d
        join (select queue_id, queue_name from pgque.queue) q on queue_id = dl_queue_id
        join (select co_id, co_name as consumer_name from pgque.consumer) c on co_id = dl_consumer_id
        group by 1, 2, 3, 4, 5, 6 order by 1, 2, 5, 6
    """
    return _rows(sql, [newest])


def count_dead_letters(group: dict[str, str], up_to: int, cap: int) -> int:
    """How many letters of the group have an id of `up_to` or less, counted up to `cap`."""
    sql = f"""
        select count(*) from (
            select from pgque.dead_letter where {_GROUP} and dl_id <= %(up_to)s
            order by dl_queue_id, dl_consumer_id, {_TYPE}, {_CAUSE}, dl_id limit %(cap)s
        ) counted
    """
    return int(_value(sql, {**group, "up_to": up_to, "cap": cap}))


def last_dead_letter(group: dict[str, str]) -> int:
    """The id of the group's newest letter, 0 when it has none."""
    sql = f"""
        select dl_id from pgque.dead_letter where {_GROUP}
        order by dl_queue_id desc, dl_consumer_id desc, {_TYPE} desc, {_CAUSE} desc, dl_id desc limit 1
    """
    return int(_value(sql, group) or 0)


def oldest_dead_letter(group: dict[str, str], up_to: int) -> int:
    """The id of the group's oldest letter, if that is `up_to` or less; else 0."""
    sql = f"""
        select dl_id from pgque.dead_letter where {_GROUP} and dl_id <= %(up_to)s
        order by dl_queue_id, dl_consumer_id, {_TYPE}, {_CAUSE}, dl_id limit 1
    """
    return int(_value(sql, {**group, "up_to": up_to}) or 0)


def dead_letters_of(group: dict[str, str], before: int, limit: int) -> list[dict[str, Any]]:
    """The group's letters with an id below `before`, newest first, without their payload."""
    sql = f"""
        select dl_id, dl_time, dl_reason, ev_id, ev_time, ev_retry, ev_extra1 as key
        from pgque.dead_letter where {_GROUP} and dl_id < %(before)s
        order by dl_queue_id desc, dl_consumer_id desc, {_TYPE} desc, {_CAUSE} desc, dl_id desc limit %(limit)s
    """
    return _rows(sql, {**group, "before": before, "limit": limit})


def dead_letter(id: int) -> dict[str, Any] | None:
    """One letter with its payload and its group; None when it is gone."""
    sql = f"""
        select queue_name, co_name as consumer_name, {_TYPE} as type, {_CAUSE} as cause, dl_id, dl_time, dl_reason,
            ev_id, ev_time, ev_retry, ev_data, ev_extra1 as key
        from pgque.dead_letter
        join pgque.queue on queue_id = dl_queue_id join pgque.consumer on co_id = dl_consumer_id
        where dl_id = %s
    """
    return next(iter(_rows(sql, [id])), None)


def dead_letters_by_key(key: str) -> list[dict[str, Any]]:
    sql = """
        select dl_id, queue_name, co_name as consumer_name, dl_time, dl_reason, ev_id, ev_type, ev_retry
        from pgque.dead_letter
        join pgque.queue on queue_id = dl_queue_id join pgque.consumer on co_id = dl_consumer_id
        where ev_extra1 = %s order by dl_id limit 100
    """
    return _rows(sql, [key])


def replay_dead_letter(id: int) -> tuple[int, str] | None:
    """Send one letter again; the new event's id and its transaction. None when somebody else has had it."""
    sql = """
        select pgque.dlq_replay(dl_id), pg_current_xact_id()::text
        from (select dl_id from pgque.dead_letter where dl_id = %s for update) locked
    """
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(sql, [id])
        row: tuple[int, str] | None = cursor.fetchone()
        return row


def replay_dead_letters(group: dict[str, str], up_to: int, limit: int) -> int:
    """Send the group's oldest letters again, in one transaction; how many. Those in other hands are left to them."""
    sql = f"""
        select count(pgque.dlq_replay(dl_id)) from (
            select dl_id from pgque.dead_letter where {_GROUP} and dl_id <= %(up_to)s
            order by dl_queue_id, dl_consumer_id, {_TYPE}, {_CAUSE}, dl_id limit %(limit)s for update skip locked
        ) locked
    """
    return int(_value(sql, {**group, "up_to": up_to, "limit": limit}))


def purge_dead_letter(id: int) -> int:
    return int(
        _value("with gone as (delete from pgque.dead_letter where dl_id = %s returning 1) table gone", [id]) or 0
    )


def purge_dead_letters(group: dict[str, str], up_to: int, limit: int) -> int:
    """Delete the group's oldest letters; how many."""
    sql = f"""
        with doomed as (
            select dl_id from pgque.dead_letter where {_GROUP} and dl_id <= %(up_to)s
            order by dl_queue_id, dl_consumer_id, {_TYPE}, {_CAUSE}, dl_id limit %(limit)s for update skip locked
        ), gone as (delete from pgque.dead_letter using doomed where dead_letter.dl_id = doomed.dl_id returning 1)
        select count(*) from gone
    """
    return int(_value(sql, {**group, "up_to": up_to, "limit": limit}))


def retries(after: Sequence[Any], limit: int) -> list[dict[str, Any]]:
    """The next events that wait to come again, the earliest first, without their payload."""
    sql = """
        select r.ev_retry_after, r.ev_owner, r.ev_id, q.queue_name, c.co_name as consumer_name, r.ev_type, r.ev_retry,
            r.ev_time, r.ev_extra1 as key
        from pgque.retry_queue r
        join pgque.queue q on q.queue_id = r.ev_queue
        left join pgque.subscription s on s.sub_queue = r.ev_queue and s.sub_id = r.ev_owner
            and s.sub_role <> 'coop_member'
        left join pgque.consumer c on c.co_id = s.sub_consumer
        where (r.ev_retry_after, r.ev_owner, r.ev_id) > (%s, %s, %s)
        order by r.ev_retry_after, r.ev_owner, r.ev_id limit %s
    """
    return _rows(sql, [*after, limit])


def events_by_key(key: str, since: datetime) -> list[dict[str, Any]]:
    """Every copy of an event that the event tables still hold: the first, and one for each time it came again.

    Found among what was sent since then, by the index on transactions. A tick has the time at which its transaction
    began, and its snapshot may be later, for it may have waited for a lock. So the last tick before `since` may have
    seen what came after; the one before it was over when that began.
    """
    sql = """
        select q.queue_name, e.ev_id, e.ev_time, e.ev_txid::text as txid, e.ev_owner, coalesce(e.ev_retry, 0) as retry,
            e.ev_type, e.ev_data
        from pgque.queue q
        cross join lateral (
            select coalesce((
                select pg_snapshot_xmin(tick_snapshot) from pgque.tick
                where tick_queue = q.queue_id and tick_time < %s order by tick_id desc offset 1 limit 1
            ), '0'::xid8)
        ) first (txid)
        join pgque.event_template e on e.ev_txid >= first.txid and e.ev_extra1 = %s
            and starts_with(e.tableoid::regclass::text, q.queue_data_pfx || '_')
        order by e.ev_txid, e.ev_id limit 200
    """
    return _rows(sql, [since, key])


def readers_of(queue: str, event_id: int, copies: Sequence[tuple[int | None, str]]) -> list[dict[str, Any]]:
    """How far each consumer and member is with an event, given its copies (owner, transaction) in any order."""
    sql = """
        select c.co_name as consumer_name, s.sub_role as role,
            coalesce(pg_visible_in_snapshot(e.txid, t.tick_snapshot), false) as has_passed,
            s.sub_batch is not null and pg_visible_in_snapshot(e.txid, n.tick_snapshot)
                and not pg_visible_in_snapshot(e.txid, t.tick_snapshot) as is_held,
            e.copies, r.ev_retry_after as retry_at, d.dl_id, d.dl_reason
        from pgque.queue q
        join pgque.subscription s on s.sub_queue = q.queue_id
        join pgque.consumer c on c.co_id = s.sub_consumer
        cross join lateral (
            select max(txid::bigint)::text::xid8, count(*) from unnest(%s::integer[], %s::text[]) copy (owner, txid)
            where owner is null or owner = s.sub_id
        ) e (txid, copies)
        left join pgque.tick t on t.tick_queue = s.sub_queue and t.tick_id = s.sub_last_tick
        left join pgque.tick n on n.tick_queue = s.sub_queue and n.tick_id = s.sub_next_tick
        left join pgque.retry_queue r on r.ev_owner = s.sub_id and r.ev_id = %s and s.sub_role <> 'coop_member'
        left join pgque.dead_letter d on d.dl_queue_id = s.sub_queue and d.dl_consumer_id = s.sub_consumer
            and d.ev_id = %s
        where q.queue_name = %s and e.copies > 0 order by c.co_name
    """
    owners, txids = [owner for owner, _ in copies], [txid for _, txid in copies]
    return _rows(sql, [owners, txids, event_id, event_id, queue])


def event_counts() -> dict[str, int]:
    """Queue -> events sent until its last tick, a count that only grows."""
    sql = """
        select queue_name, tick_event_seq from pgque.queue
        cross join lateral (
            select tick_event_seq from pgque.tick where tick_queue = queue_id order by tick_id desc limit 1
        ) newest
    """
    return {row["queue_name"]: row["tick_event_seq"] for row in _rows(sql)}


def version() -> str | None:
    """The PgQue API version of the installed engine; None when none is installed."""
    return _value("select pgque.version()") if _installed("version") else None


def engine_version() -> str | None:
    """The version of our own engine; None when another or none is installed."""
    return _value("select pgque.engine_version()") if _installed("engine_version") else None


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
    text: str | None = _value("select obj_description(to_regnamespace('pgque'), 'pg_namespace')")
    return text


@contextmanager
def install_lock() -> Iterator[None]:
    """One installer at a time, for the length of a transaction."""
    with transaction.atomic(using=ALIAS):
        _value("select pg_advisory_xact_lock(hashtext('pgque_bootstrap'))")
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
    return bool(_value(sql + " where n.nspname = 'pgque' and p.proname = %s)", [function]))


def _value_alone(sql: str, params: Sequence[Any] = ()) -> Any:
    """`_value` in a transaction of its own: what is sent and ticked in the same one is delivered to nobody."""
    if connections[ALIAS].in_atomic_block:
        raise transaction.TransactionManagementError("Events are ticked and received outside any transaction.")
    return _value(sql, params)


def _value(sql: str, params: Sequence[Any] | dict[str, Any] = ()) -> Any:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(sql, params)
        row = cursor.fetchone()
        return row[0] if row else None


def _rows(sql: str, params: Sequence[Any] | dict[str, Any] = ()) -> list[dict[str, Any]]:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(sql, params)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

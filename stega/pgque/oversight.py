"""What operators ask of the event log and do to its dead letters: the statements behind the console and its kin.

They read the tables that the engine names, so each says what it costs: a count ends somewhere, an order goes by an
index. In autocommit unless the caller opened atomic(using="events"); raises what Django raises.
"""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import connections

from stega.pgque import query
from stega.pgque.query import ALIAS


def queue_space(limit: int, newer_than: timedelta) -> list[dict[str, Any]]:
    """How often each queue delivers again, and what it keeps: bytes of its event tables, retries, dead letters.

    Counts end at `limit`.
    The orders in it make every count go by an index, also for a queue that has little beside one that has much.
    """
    sql = """
        select q.queue_name, coalesce(q.queue_max_retries, 5) as max_retries,
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
    return query.rows(sql, [limit, limit, limit, newer_than, limit])


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
    return query.rows(sql)


def has_cause_index() -> bool:
    """Whether the engine has the index that dead letters are grouped by: our own has, upstream's has not."""
    return bool(query.value("select to_regclass('pgque.dl_cause_idx') is not null"))


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
    return query.rows(sql, [*after, limit, cap])


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
    return query.rows(sql, [newest])


def count_dead_letters(group: dict[str, str], up_to: int, cap: int) -> int:
    """How many letters of the group have an id of `up_to` or less, counted up to `cap`."""
    sql = f"""
        select count(*) from (
            select from pgque.dead_letter where {_GROUP} and dl_id <= %(up_to)s
            order by dl_queue_id, dl_consumer_id, {_TYPE}, {_CAUSE}, dl_id limit %(cap)s
        ) counted
    """
    return int(query.value(sql, {**group, "up_to": up_to, "cap": cap}))


def last_dead_letter(group: dict[str, str]) -> int:
    """The id of the group's newest letter, 0 when it has none."""
    sql = f"""
        select dl_id from pgque.dead_letter where {_GROUP}
        order by dl_queue_id desc, dl_consumer_id desc, {_TYPE} desc, {_CAUSE} desc, dl_id desc limit 1
    """
    return int(query.value(sql, group) or 0)


def oldest_dead_letters(group: dict[str, str], up_to: int, limit: int) -> list[int]:
    """The ids of the group's oldest letters, up to `up_to`."""
    sql = f"""
        select dl_id from pgque.dead_letter where {_GROUP} and dl_id <= %(up_to)s
        order by dl_queue_id, dl_consumer_id, {_TYPE}, {_CAUSE}, dl_id limit %(limit)s
    """
    return [row["dl_id"] for row in query.rows(sql, {**group, "up_to": up_to, "limit": limit})]


def dead_letters_of(group: dict[str, str], before: int, limit: int) -> list[dict[str, Any]]:
    """The group's letters with an id below `before`, newest first, without their payload."""
    sql = f"""
        select dl_id, dl_time, dl_reason, ev_id, ev_time, ev_retry, ev_extra1 as key
        from pgque.dead_letter where {_GROUP} and dl_id < %(before)s
        order by dl_queue_id desc, dl_consumer_id desc, {_TYPE} desc, {_CAUSE} desc, dl_id desc limit %(limit)s
    """
    return query.rows(sql, {**group, "before": before, "limit": limit})


def dead_letter(id: int) -> dict[str, Any] | None:
    """One letter with its payload and its group; None when it is gone."""
    sql = f"""
        select queue_name, co_name as consumer_name, {_TYPE} as type, {_CAUSE} as cause, dl_id, dl_time, dl_reason,
            ev_id, ev_time, ev_retry, ev_data, ev_extra1 as key
        from pgque.dead_letter
        join pgque.queue on queue_id = dl_queue_id join pgque.consumer on co_id = dl_consumer_id
        where dl_id = %s
    """
    return next(iter(query.rows(sql, [id])), None)


def dead_letters_by_key(key: str) -> list[dict[str, Any]]:
    sql = """
        select dl_id, queue_name, co_name as consumer_name, dl_time, dl_reason, ev_id, ev_type, ev_retry
        from pgque.dead_letter
        join pgque.queue on queue_id = dl_queue_id join pgque.consumer on co_id = dl_consumer_id
        where ev_extra1 = %s order by dl_id limit 100
    """
    return query.rows(sql, [key])


def keys_that_may_come_again() -> set[uuid.UUID]:
    """The keys of all dead letters and retries, at one moment; as many as there are of these."""
    sql = """
        select ev_extra1 as key from pgque.dead_letter where ev_extra1 is not null
        union select ev_extra1 from pgque.retry_queue where ev_extra1 is not null
    """
    return _keys(query.rows(sql))


def keys_of(letters: Sequence[int]) -> set[uuid.UUID]:
    """The keys of these dead letters; one without is told by its number alone."""
    return _keys(query.rows("select ev_extra1 as key from pgque.dead_letter where dl_id = any(%s)", [list(letters)]))


def _keys(rows: list[dict[str, Any]]) -> set[uuid.UUID]:
    keys = set()
    for row in rows:
        with suppress(ValueError, TypeError):
            keys.add(uuid.UUID(row["key"]))
    return keys


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


def replay_dead_letters(ids: Sequence[int]) -> int:
    """Send these letters again, in one transaction; how many. Those in other hands are left to them."""
    sql = """
        select count(pgque.dlq_replay(dl_id)) from (
            select dl_id from pgque.dead_letter where dl_id = any(%s) order by dl_id for update skip locked
        ) locked
    """
    return int(query.value(sql, [list(ids)]))


def purge_dead_letter(id: int) -> int:
    return int(
        query.value("with gone as (delete from pgque.dead_letter where dl_id = %s returning 1) table gone", [id]) or 0
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
    return int(query.value(sql, {**group, "up_to": up_to, "limit": limit}))


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
    return query.rows(sql, [*after, limit])


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
    return query.rows(sql, [since, key])


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
    return query.rows(sql, [owners, txids, event_id, event_id, queue])


def event_counts() -> dict[str, int]:
    """Queue -> events sent until its last tick, a count that only grows."""
    sql = """
        select queue_name, tick_event_seq from pgque.queue
        cross join lateral (
            select tick_event_seq from pgque.tick where tick_queue = queue_id order by tick_id desc limit 1
        ) newest
    """
    return {row["queue_name"]: row["tick_event_seq"] for row in query.rows(sql)}

"""Dead letters in tests: as consumers leave them, in any number, without any consumer at work."""

from django.db import connections


def bury(
    queue: str,
    consumer: str,
    reason: str,
    *,
    count: int = 1,
    event_type: str = "ticket.welcome",
    payload: str = '{"user_id": 1, "email": "customer@example.com", "display_name": "Customer"}',
    key: str | None = None,
) -> list[int]:
    """Leave `count` dead letters; `%s` in the reason becomes the number of each. Their ids, oldest first."""
    sql = """
        insert into pgque.dead_letter (
            dl_queue_id, dl_consumer_id, dl_reason, ev_id, ev_time, ev_txid, ev_retry, ev_type, ev_data, ev_extra1
        )
        select q.queue_id, c.co_id, replace(%s, '%%s', n::text), nextval(q.queue_event_seq::regclass), now(),
            pg_current_xact_id(), 3, %s, %s, coalesce(%s, gen_random_uuid()::text)
        from generate_series(1, %s) n, pgque.queue q, pgque.consumer c
        where q.queue_name = %s and c.co_name = %s
        returning dl_id
    """
    with connections["events"].cursor() as cursor:
        cursor.execute(sql, [reason, event_type, payload, key, count, queue, consumer])
        return sorted(row[0] for row in cursor.fetchall())

"""The event log in tests: ticks on demand, and what is left where."""

from django.db import connections

from stega.pgque import catalogue, client, query


def tick(queue):
    """Make a tick now, so that what has been sent can be received."""
    client.force_next_tick(queue)
    with connections["events"].cursor() as cursor:
        cursor.execute("select pgque.ticker(%s)", [queue])


def published_by(tasks, monkeypatch):
    """What the module of tasks publishes from now on, checked as the real publish() does."""
    events = []

    def publish(event_type, payload, key):
        catalogue.check(event_type, payload)
        events.append((event_type, payload, key))
        return len(events)

    monkeypatch.setattr(tasks, "publish", publish)
    return events


def retries(queue):
    """The ids of events waiting to come again."""
    with connections["events"].cursor() as cursor:
        cursor.execute(
            "select ev_id from pgque.retry_queue r join pgque.queue q on q.queue_id = r.ev_queue"
            " where queue_name = %s order by ev_id",
            [queue],
        )
        return [row[0] for row in cursor.fetchall()]


def dead_letters(queue):
    """The reason of each dead letter, by the id of its event."""
    return {row["ev_id"]: row["dl_reason"] for row in inspected(queue)}


def inspected(queue):
    """The newest dead letters, each with all that the engine keeps of it."""
    return query.rows("select * from pgque.dlq_inspect(%s)", [queue])


def replay(queue):
    """Put every dead letter back, as an operator does, and tick."""
    with connections["events"].cursor() as cursor:
        cursor.execute("select pgque.dlq_replay_all(%s)", [queue])
    tick(queue)


def make_retries_due(queue):
    with connections["events"].cursor() as cursor:
        cursor.execute(
            "update pgque.retry_queue set ev_retry_after = now() - interval '1 second'"
            " where ev_queue = (select queue_id from pgque.queue where queue_name = %s)",
            [queue],
        )
    while client.maint_retry_events():
        pass
    tick(queue)

"""Time that goes by without waiting: every moment that delivery and the event log look at moves into the past."""

from datetime import timedelta

from django.db import connections
from django.db.models import F

from notifications.models import Circuit, Delivery
from tests.support.event_log import tick


def pass_by(seconds):
    """Let that time go by for the ledger and the circuits."""
    gone = timedelta(seconds=seconds)
    for model, moments in {
        Delivery: ["created_at", "claimed_at", "retry_at", "slot_at"],
        Circuit: ["retry_at", "next_slot_at"],
    }.items():
        model.objects.update(**{moment: F(moment) - gone for moment in moments})


def pass_to_next_retry(queue):
    """Let time go by, here and in the event log, until the next events come again; how many seconds that took."""
    due = """
        select greatest(0, extract(epoch from min(ev_retry_after) - clock_timestamp()))::float8
        from pgque.retry_queue join pgque.queue on queue_id = ev_queue where queue_name = %s
    """
    shift = """
        update pgque.retry_queue set ev_retry_after = ev_retry_after - make_interval(secs => %s)
        where ev_queue = (select queue_id from pgque.queue where queue_name = %s)
    """
    with connections["events"].cursor() as cursor:
        cursor.execute(due, [queue])
        seconds = (cursor.fetchone()[0] or 0.0) + 0.5
        cursor.execute(shift, [seconds, queue])
        cursor.execute("select pgque.maint_retry_events()")
    pass_by(seconds)
    tick(queue)
    return seconds

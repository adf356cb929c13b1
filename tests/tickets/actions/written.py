"""What the writes of tickets leave behind, and that one of them waits for another."""

from django.db import connection

from stega.models import OutboxEntry


def promised():
    """The tasks in the outbox and the lines of the history they are about."""
    return [(entry.task, entry.args) for entry in OutboxEntry.objects.order_by("pk")]


def history(ticket):
    return [(event.type, event.actor_id, event.payload) for event in ticket.events.all()]


def somebody_waits_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute("select exists (select from pg_locks where not granted)")
        return cursor.fetchone()[0]

"""Tasks for entries of the outbox's own tests: each does one thing that a task may do to its worker."""

from contextlib import ExitStack

from django.db import InternalError, OperationalError, connections

from stega import outbox
from stega.pgque import client
from tests.support import servers
from tickets.models import Product

performed: list[tuple] = []

hanging = ExitStack()
"""Servers that a task has made hang."""


def note(*args, event_key):
    performed.append((*args, event_key))
    return {"noted": list(args)}


def fail(*args, event_key):
    raise ValueError("bad \x00 \ud83d")


def find_it_in_other_hands(*args, event_key):
    raise outbox.InTurn


def end_the_worker(*args, event_key):
    raise SystemExit


def lose_the_database(*args, event_key):
    raise OperationalError("server closed the connection")


def meet_a_read_only_server(*args, event_key):
    error = InternalError("cannot execute INSERT in a read-only transaction")
    error.__cause__ = type("Cause", (Exception,), {"sqlstate": "25006"})()
    raise error


def ask_for_a_column_that_is_not_there(*args, event_key):
    with connections["default"].cursor() as cursor:
        cursor.execute("select nope from stega_outboxentry")


def publish(queue, *, event_key):
    return {"event": client.insert_event(queue, "ticket.welcome", {}, str(event_key))}


def wait_in(alias, *, event_key):
    with connections[alias].cursor() as cursor:
        cursor.execute("select pg_sleep(60)")


def count_products(*args, event_key):
    return {"products": Product.objects.count()}


def look_at_locks(*args, event_key):
    """Whether each session with an advisory lock on `events` is another than this, and in a transaction."""
    statement = """
        select pid <> pg_backend_pid() and xact_start is not null
        from pg_stat_activity join pg_locks using (pid) where locktype = 'advisory'
    """
    with connections["events"].cursor() as cursor:
        cursor.execute(statement)
        return {"are_of_transactions": [row[0] for row in cursor.fetchall()]}


def make_default_hang(*args, event_key):
    hanging.enter_context(servers.hanging(servers.app))
    Product.objects.count()


def end_the_session(*args, event_key):
    with connections["default"].cursor() as cursor:
        cursor.execute("select pg_terminate_backend(pg_backend_pid())")


TASKS = {
    task.__name__: f"{__name__}.{task.__name__}"
    for task in (
        note,
        fail,
        find_it_in_other_hands,
        end_the_worker,
        lose_the_database,
        meet_a_read_only_server,
        ask_for_a_column_that_is_not_there,
        publish,
        wait_in,
        count_products,
        look_at_locks,
        make_default_hang,
        end_the_session,
    )
}
"""As settings.TASKS names them."""

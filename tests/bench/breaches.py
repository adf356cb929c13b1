"""The figures of the scan for breached SLAs."""

import json
import subprocess
import sys

from django.db import connection

from stega.models import OutboxEntry
from tests.bench.__main__ import Figure
from tests.bench.figures import timed
from tests.factories import make_product, make_user

TICKETS = 1_000_000
BREACHES = 10_000


def scan() -> list[Figure]:
    """Find the newly breached among a million open tickets, twice in a row."""
    _open_tickets()
    result = json.loads(subprocess.check_output([sys.executable, "-m", "tests.bench.scan"]))
    first, second = result["scans"]
    told = OutboxEntry.objects.filter(task="publish_sla_breached").values("args").distinct().count()
    once = (first["breaches_found"], second["breaches_found"], told) == (BREACHES, 0, BREACHES)
    grown = result["peak_mib"] - result["before_mib"]
    raw = timed(_mark_as_many_rows)
    name = f"SLA scan, {BREACHES:,} breaches of {TICKETS:,} tickets"
    return [
        Figure(
            name,
            f"{first['seconds']:.2f} s",
            "<= 3 s",
            first["seconds"] <= 3,
            f"one update and one insert of as many rows: {raw:.2f} s",
        ),
        Figure("breaches promised once, by two scans", f"{told:,}", f"{BREACHES:,}", once, ""),
        Figure("memory that the scan adds", f"{grown:.0f} MiB", "<= 30 MiB", grown <= 30, ""),
    ]


def _open_tickets() -> None:
    product, customer = make_product("Scan"), make_user("bench-scan")
    statement = """
        insert into tickets_ticket
            (product_id, author_id, title, body, status, priority, sla_due_at, created_at, updated_at)
        select %s, %s, 'Ticket ' || n, 'It is broken.', 'open', 'medium',
            now() + case when n %% 100 = 0 then -interval '1 minute' else interval '1 day' end * (1 + n / 1000000.0),
            now() - interval '1 day', now() - interval '1 day'
        from generate_series(1, %s) n
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, [product.pk, customer.pk, TICKETS])
        cursor.execute("analyze tickets_ticket")


def _mark_as_many_rows() -> None:
    """What the database does at the least: change so many tickets, and write a line about each."""
    statement = """
        with marked as (
            update tickets_ticket set sla_breached_at = now() where id % 100 = 50 and sla_breached_at is null
            returning id
        )
        insert into tickets_ticketevent (ticket_id, type, payload, created_at)
        select id, 'sla_breached', '{}', now() from marked
    """
    with connection.cursor() as cursor:
        cursor.execute(statement)

"""The plans of the queries that meet every ticket, on a table large enough for the planner to care."""

import pytest
from django.db import connection

from tests.factories import make_product, make_user
from tickets.models import MARK_BREACHED, Ticket
from tickets.workflow import RUNNING

TICKETS = 200_000

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def desk(django_db_setup, django_db_blocker):
    """A desk in its third year: one ticket in a hundred is still open, and one of these in a hundred is late."""
    statement = """
        insert into tickets_ticket
            (product_id, author_id, title, body, status, priority, sla_due_at, created_at, updated_at)
        select %s, %s, 'Ticket', 'Broken', case n %% 100 when 0 then 'open' else 'closed' end, 'medium',
            now() + case n %% 10000 when 0 then -interval '1 hour' else interval '1 day' end,
            now() - n * interval '5 minutes', now() - n * interval '5 minutes'
        from generate_series(1, %s) n
    """
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        product, author = make_product("Plans"), make_user("plans")
        cursor.execute(statement, [product.pk, author.pk, TICKETS])
        cursor.execute("analyze tickets_ticket")
        yield
        cursor.execute("truncate tickets_ticket restart identity cascade")
        product.delete()
        author.delete()


def test_the_scan_for_breaches_reads_only_what_can_breach():
    with connection.cursor() as cursor:
        cursor.execute(f"explain {MARK_BREACHED}", [list(RUNNING), 1_000])
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "using tickets_ticket_breach_scan" in plan
    assert "Seq Scan on tickets_ticket" not in plan


def test_the_list_of_the_staff_reads_no_more_than_its_page_by_deadline(admin):
    plan = Ticket.objects.visible_to(admin).for_page().by_deadline()[:25].explain()

    assert "using tickets_ticket_deadline" in plan
    assert "Seq Scan on tickets_ticket" not in plan


def test_the_list_of_an_agent_follows_the_same_index(agent):
    plan = Ticket.objects.visible_to(agent).for_page().by_deadline()[:25].explain()

    assert "using tickets_ticket_deadline" in plan

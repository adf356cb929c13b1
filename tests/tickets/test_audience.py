import pytest

from stega.audience import TicketAudience, comment_text, ticket_audience
from tests.factories import make_ticket
from tickets import actions
from tickets.models import Product, Ticket

pytestmark = pytest.mark.django_db


def test_a_ticket_is_given_as_it_is_now(customer, agent, product):
    ticket = make_ticket(customer, product, assignee=agent)
    Product.objects.update(name="Store", slack_webhook_url="https://hooks.example.com/secret")
    Ticket.objects.update(title="Still broken")

    assert ticket_audience(ticket.pk) == TicketAudience(
        ticket_id=ticket.pk,
        title="Still broken",
        product_id=product.pk,
        product_name="Store",
        priority="medium",
        status="open",
        author_id=customer.pk,
        assignee_id=agent.pk,
        opened_at=ticket.created_at,
        sla_due_at=ticket.sla_due_at,
        sla_breached_at=None,
        slack_webhook_url="https://hooks.example.com/secret",
    )


@pytest.mark.parametrize("ticket_id", [4711, 2**64])
def test_a_ticket_that_is_gone_concerns_nobody(ticket_id):
    assert ticket_audience(ticket_id) is None


def test_a_public_comment_is_read_by_who_may_see_the_ticket(customer, outsider, other_agent, agent, product):
    ticket = make_ticket(customer, product, assignee=agent)
    comment = actions.comment(agent, ticket.pk, "A public word")

    read = [comment_text(comment.pk, reader.pk) for reader in (customer, agent, outsider, other_agent)]

    assert read == ["A public word", "A public word", None, None]


def test_an_internal_comment_is_given_to_nobody(customer, agent, product):
    ticket = make_ticket(customer, product, assignee=agent)
    comment = actions.comment(agent, ticket.pk, "Between us", internal=True)

    assert [comment_text(comment.pk, reader.pk) for reader in (customer, agent)] == [None, None]


def test_a_comment_or_a_reader_that_is_gone_gives_no_text(customer):
    assert [comment_text(4711, customer.pk), comment_text(4711, 4711)] == [None, None]

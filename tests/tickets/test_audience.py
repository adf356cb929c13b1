import pytest

from stega.audience import comment_text, product_slack_webhook, ticket_audience
from tests.factories import make_product, make_ticket
from tickets import actions

pytestmark = pytest.mark.django_db


def test_author_assignee_and_public_commenters_take_part(customer, agent, other_agent, admin, product):
    ticket = make_ticket(customer, product, assignee=agent)
    actions.comment(admin, ticket.pk, "A public word")
    other_ticket = make_ticket(customer, product)
    actions.comment(other_agent, other_ticket.pk, "Elsewhere")

    audience = ticket_audience(ticket.pk)

    assert audience is not None
    assert audience.participant_ids == {customer.pk, agent.pk, admin.pk}


def test_who_commented_internally_takes_no_part(customer, agent, product):
    ticket = make_ticket(customer, product)
    actions.comment(agent, ticket.pk, "Between us", internal=True)

    audience = ticket_audience(ticket.pk)

    assert audience is not None
    assert audience.participant_ids == {customer.pk}


def test_a_ticket_that_is_gone_concerns_nobody():
    assert ticket_audience(4711) is None


def test_the_webhook_of_a_product_is_found():
    product = make_product(slack_webhook_url="https://hooks.example.com/secret")

    assert product_slack_webhook(product.pk) == "https://hooks.example.com/secret"


def test_a_product_that_is_gone_has_no_webhook():
    assert product_slack_webhook(4711) == ""


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

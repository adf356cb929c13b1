"""The comment form: what is refused comes back, and what is meant for staff stays with staff."""

import uuid

import pytest
from django.utils.html import escape

from tests.factories import make_ticket
from tests.tickets.views.pages import nothing_written, page, texts
from tickets.models import Comment, Ticket

pytestmark = pytest.mark.django_db

BAD_TEXT = [
    pytest.param("", id="empty"),
    pytest.param("   \n ", id="blank"),
    pytest.param("x" * 20_001, id="too long"),
    pytest.param("a\x00b", id="NUL"),
]


@pytest.mark.parametrize("body", BAD_TEXT)
def test_a_bad_comment_is_refused_and_kept_for_correction(as_user, customer, ticket, body):
    response = as_user(customer).post(page(ticket, "comment"), {"body": body})

    assert response.status_code == 200
    assert "body" in response.context["comment_form"].errors
    assert nothing_written()


def test_a_comment_of_the_full_length_counts_each_line_end_once(as_user, customer, ticket):
    body = "x\n" * 9_999 + "xx"

    as_user(customer).post(page(ticket, "comment"), {"body": body.replace("\n", "\r\n")})

    assert Comment.objects.get().body == body


def test_what_was_meant_to_be_internal_is_never_published(as_user, customer, ticket):
    response = as_user(customer).post(page(ticket, "comment"), {"body": "Between us", "is_internal": "on"})

    assert "You may not write internal comments." in texts(response)
    assert "Between us</textarea>" in texts(response)
    assert nothing_written()


@pytest.mark.parametrize("body", ["Half an hour of <work>", "x" * 20_001])
def test_a_comment_on_a_ticket_closed_meanwhile_is_given_back(as_user, customer, product, body):
    ticket = make_ticket(customer, product, status="closed")

    response = as_user(customer).post(page(ticket, "comment"), {"body": body})

    assert f"{escape(body)}</textarea>" in texts(response)


@pytest.mark.parametrize("body", ["Half an hour of <work>", "x" * 20_001])
def test_a_comment_on_a_ticket_that_another_has_taken_is_given_back(
    as_user, agent, other_agent, customer, product, body
):
    ticket = make_ticket(customer, product, assignee=other_agent)

    response = as_user(agent).post(page(ticket, "comment"), {"body": body})

    assert response.status_code == 404
    assert f"{escape(body)}</textarea>" in texts(response)


def test_a_comment_sent_twice_gets_its_answer_though_the_ticket_is_anothers_by_now(as_user, agent, other_agent, ticket):
    form = {"body": "Between us", "is_internal": "on", "form_key": uuid.uuid4()}
    browser = as_user(agent)
    browser.post(page(ticket, "comment"), form)
    Ticket.objects.update(assignee=other_agent)

    second = browser.post(page(ticket, "comment"), form, follow=True)

    assert second.redirect_chain == [("/tickets/", 302)]
    assert [str(message) for message in second.context["messages"]][-1] == "Your comment is added."
    assert Comment.objects.count() == 1

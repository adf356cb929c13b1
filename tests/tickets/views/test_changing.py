"""What is done to a ticket from its page: by whom, and what becomes of a wrong or late step."""

import pytest

from tests.factories import make_ticket
from tests.tickets.views.pages import HUGE, nothing_written, page
from tickets import actions

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("step", "form"),
    [
        ("comment", {"body": "Hello"}),
        ("status", {"status": "resolved"}),
        ("priority", {"priority": "low"}),
        ("assign", {"assignee": "nobody"}),
        ("take", {}),
    ],
)
def test_an_outsider_can_do_nothing_to_a_ticket(as_user, outsider, ticket, step, form):
    response = as_user(outsider).post(page(ticket, step), form)

    assert response.status_code == 404
    assert nothing_written()


@pytest.mark.parametrize(
    ("step", "form"),
    [
        ("status", {"status": "resolved"}),
        ("priority", {"priority": "low"}),
        ("assign", {"assignee": "nobody"}),
        ("take", {}),
    ],
)
def test_a_customer_can_only_comment(as_user, customer, ticket, step, form):
    response = as_user(customer).post(page(ticket, step), form)

    assert response.status_code == 403
    assert nothing_written()


@pytest.mark.parametrize("step", ["status", "priority", "assign", "take"])
def test_a_customer_is_refused_whatever_the_form_says(as_user, customer, ticket, step):
    assert as_user(customer).post(page(ticket, step), {}).status_code == 403


@pytest.mark.parametrize(
    ("step", "value"), [("status", "resolved"), ("priority", "low"), ("assign", ""), ("take", ""), ("comment", "")]
)
def test_a_ticket_closed_meanwhile_says_so_on_its_page(as_user, agent, other_agent, customer, product, step, value):
    ticket = make_ticket(customer, product, assignee=None if step == "take" else agent, status="closed")
    form = {"body": "Hi", "assignee": other_agent.pk, "status": value, "priority": value}

    response = as_user(agent).post(page(ticket, step), form, follow=True)

    assert response.status_code == 200
    assert [str(message) for message in response.context["messages"]] == ["This ticket is closed."]
    assert response.context["ticket"] == ticket


@pytest.mark.parametrize(
    ("step", "form"),
    [
        ("status", {"status": "nonsense"}),
        ("status", {}),
        ("status", {"status": "\x00"}),
        ("priority", {"priority": "urgent"}),
        ("priority", {"priority": ""}),
        ("assign", {"assignee": ""}),
        ("assign", {"assignee": "4711"}),
        ("assign", {"assignee": HUGE}),
        ("assign", {"assignee": "\x00"}),
    ],
)
def test_a_value_that_is_not_offered_is_refused_with_a_message(as_user, admin, ticket, step, form):
    response = as_user(admin).post(page(ticket, step), form, follow=True)

    assert [message.level_tag for message in response.context["messages"]] == ["error"]
    assert nothing_written()


def test_an_admin_leaves_a_ticket_to_nobody(as_user, admin, agent, customer, product):
    ticket = make_ticket(customer, product, assignee=agent)

    as_user(admin).post(page(ticket, "assign"), {"assignee": "nobody"})

    ticket.refresh_from_db()
    assert ticket.assignee is None


def test_an_agent_takes_a_ticket_with_one_click(as_user, agent, ticket):
    response = as_user(agent).post(page(ticket, "take"))

    ticket.refresh_from_db()
    assert (response.url, ticket.assignee) == (page(ticket), agent)


def test_who_comes_too_late_does_not_learn_who_was_first(as_user, agent, other_agent, ticket):
    actions.take(agent, ticket.pk)

    response = as_user(other_agent).post(page(ticket, "take"))

    assert response.status_code == 404
    assert "taken" not in response.content.decode()


def test_an_admin_assigns_resolves_and_reprioritises(as_user, admin, agent, ticket):
    browser = as_user(admin)

    browser.post(page(ticket, "assign"), {"assignee": agent.pk})
    browser.post(page(ticket, "priority"), {"priority": "high"})
    browser.post(page(ticket, "status"), {"status": "resolved"})

    ticket.refresh_from_db()
    assert (ticket.assignee, ticket.priority, ticket.status) == (agent, "high", "resolved")


@pytest.mark.parametrize("step", ["comment", "status", "priority", "assign", "take"])
def test_a_step_visited_with_the_browser_shows_the_ticket(as_user, admin, ticket, step):
    assert as_user(admin).get(page(ticket, step)).url == page(ticket)

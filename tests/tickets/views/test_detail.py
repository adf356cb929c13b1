"""The page of a ticket: who sees it, what it shows, and what it offers to whom."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone
from django.utils.html import escape
from hypothesis import HealthCheck, given
from hypothesis import settings as trials
from hypothesis import strategies as st

from accounts.models import User
from tests.factories import make_product, make_ticket
from tests.tickets.views.pages import HUGE, page, texts
from tickets import actions
from tickets.models import TicketEvent

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("title", ["<script>alert(1)</script>", "{{ 7|add:7 }}", "'\"><img src=x onerror=alert(1)>"])
def test_text_is_shown_literally(as_user, customer, product, title):
    ticket = make_ticket(customer, product, title=title, body=title)
    actions.comment(customer, ticket.pk, title)

    shown = texts(as_user(customer).get(page(ticket)))

    assert "<script>alert" not in shown
    assert "<img src=x" not in shown
    assert "{{ 7|add:7 }}" in shown or "{" not in title


@trials(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(codec="utf-8"), min_size=1, max_size=80))
def test_any_text_is_refused_or_shown_as_it_is(as_user, customer, product, text):
    browser = as_user(customer)
    form = {"title": "Any", "body": text, "product": product.pk, "priority": "low"}

    opened = browser.post("/tickets/new/", form)

    if opened.status_code == 302:
        assert escape(text.replace("\r\n", "\n").strip()) in texts(browser.get(opened.url))
    else:
        assert opened.context["form"].errors.keys() == {"body"}


@pytest.mark.parametrize("who", ["outsider", "other_agent"])
def test_a_foreign_ticket_is_not_found(as_user, request, who, agent, customer, product):
    ticket = make_ticket(customer, product, assignee=agent)

    response = as_user(request.getfixturevalue(who)).get(page(ticket))

    assert response.status_code == 404


@pytest.mark.parametrize(
    "path", ["/tickets/0/", "/tickets/99999999999999999999/", f"/tickets/{HUGE}/", "/tickets/%00/"]
)
def test_a_ticket_that_does_not_exist_is_not_found(as_user, admin, path):
    assert as_user(admin).get(path).status_code == 404


def test_a_customer_sees_neither_internal_comments_nor_history(as_user, customer, agent, ticket):
    actions.comment(agent, ticket.pk, "Between us", internal=True)

    response = as_user(customer).get(page(ticket))

    assert "Between us" not in texts(response)
    assert response.context["history"] is None


def test_staff_sees_internal_comments_and_history(as_user, agent, ticket):
    actions.comment(agent, ticket.pk, "Between us", internal=True)

    shown = texts(as_user(agent).get(page(ticket)))

    assert "Between us" in shown
    assert "added an internal comment" in shown


def test_the_history_says_every_kind_of_event(as_user, admin, agent, customer, product):
    ticket = actions.open_ticket(customer, product, "Down", "It", "low")
    actions.assign(admin, ticket.pk, agent)
    actions.assign(admin, ticket.pk, None)
    actions.change_status(admin, ticket.pk, "waiting")
    actions.change_priority(admin, ticket.pk, "high")
    actions.comment(admin, ticket.pk, "Hello")
    TicketEvent.objects.create(ticket=ticket, type="sla_breached", created_at=timezone.now())

    shown = texts(as_user(admin).get(page(ticket)))

    assert "assigned the ticket to Agent" in shown
    assert "unassigned Agent" in shown
    assert "from “Open” to “Waiting for customer”" in shown
    assert "from “Low” to “High”" in shown
    assert "the SLA deadline has passed" in shown


@pytest.mark.parametrize(
    ("who", "forms"),
    [
        ("customer", set()),
        ("agent", {"status_form", "priority_form", "assignee_form"}),
        ("admin", {"status_form", "priority_form", "assignee_form"}),
    ],
)
def test_the_page_offers_the_forms_the_person_may_use(as_user, request, who, customer, agent, product, forms):
    ticket = make_ticket(customer, product, assignee=agent)

    context = as_user(request.getfixturevalue(who)).get(page(ticket)).context

    assert {name for name in ("status_form", "priority_form", "assignee_form") if name in context} == forms


@pytest.mark.parametrize("name", ["status", "priority", "assignee"])
def test_no_change_is_chosen_before_the_person_chooses(as_user, admin, agent, customer, product, name):
    ticket = make_ticket(customer, product, assignee=agent)

    field = as_user(admin).get(page(ticket)).context[f"{name}_form"][name]

    values = [str(value) for value, _label in field.field.choices]
    assert values[0] == ""
    assert field.value() in (None, "")
    assert field.field.required
    assert str(getattr(ticket, f"{name}_id" if name == "assignee" else name)) not in values


@pytest.mark.parametrize(
    ("who", "assigned", "told"), [("agent", False, True), ("agent", True, False), ("admin", False, False)]
)
def test_an_agent_is_told_how_to_change_what_nobody_has(
    as_user, request, agent, customer, product, who, assigned, told
):
    ticket = make_ticket(customer, product, assignee=agent if assigned else None)

    shown = texts(as_user(request.getfixturevalue(who)).get(page(ticket)))

    assert ("Take this ticket to change its status." in shown) == told


def test_times_are_shown_in_the_time_zone_of_the_user(as_user, customer, product):
    ticket = make_ticket(customer, product, sla_due_at=datetime(2030, 3, 1, 23, 30, tzinfo=UTC))
    User.objects.update(time_zone="Asia/Tokyo")

    assert "March 2, 2030, 8:30 a.m. (Asia/Tokyo)" in texts(as_user(customer).get(page(ticket)))


def test_the_slack_webhook_is_on_no_page(as_user, admin, customer):
    product = make_product(slack_webhook_url="https://hooks.example.com/services/secret")
    ticket = make_ticket(customer, product)
    browser = as_user(admin)

    pages = ["/tickets/", "/tickets/new/", page(ticket), f"/admin/tickets/product/{product.pk}/change/"]

    assert not [path for path in pages if "services/secret" in texts(browser.get(path))]

"""The form of a new ticket: once per form, and never losing what somebody wrote."""

import uuid

import pytest

from tests.factories import make_product
from tests.tickets.views.pages import HUGE, nothing_written, page, texts
from tickets import actions
from tickets.models import Product, Ticket

pytestmark = pytest.mark.django_db


def test_a_customer_opens_a_ticket(as_user, customer, product):
    form = {"title": "Down", "body": "All\r\nof it", "product": product.pk, "priority": "critical"}

    response = as_user(customer).post("/tickets/new/", form)

    ticket = Ticket.objects.get()
    assert response.url == page(ticket)
    assert (ticket.author, ticket.title, ticket.body, ticket.priority) == (customer, "Down", "All\nof it", "critical")


def test_a_form_sent_twice_opens_one_ticket(as_user, customer, product):
    browser = as_user(customer)
    key = browser.get("/tickets/new/").context["form"]["form_key"].value()
    form = {"title": "Down", "body": "It", "product": product.pk, "priority": "low", "form_key": key}

    first, second = browser.post("/tickets/new/", form), browser.post("/tickets/new/", form)

    assert first.url == second.url == page(Ticket.objects.get())


def test_a_form_sent_twice_gets_its_answer_though_the_product_was_retired_in_between(as_user, customer, product):
    form = {"title": "Down", "body": "It", "product": product.pk, "priority": "low", "form_key": uuid.uuid4()}
    browser = as_user(customer)
    first = browser.post("/tickets/new/", form)
    Product.objects.update(is_active=False)

    second = browser.post("/tickets/new/", form)

    assert first.url == second.url == page(Ticket.objects.get())


def test_the_form_of_one_person_says_nothing_of_anothers_ticket(as_user, customer, outsider, product):
    form = {"title": "Down", "body": "It", "product": product.pk, "priority": "low", "form_key": uuid.uuid4()}
    first = as_user(customer).post("/tickets/new/", form)

    second = as_user(outsider).post("/tickets/new/", form)

    assert first.url != second.url
    assert {ticket.author for ticket in Ticket.objects.all()} == {customer, outsider}


def test_a_refused_form_keeps_its_key(as_user, customer, product):
    key = uuid.uuid4()

    response = as_user(customer).post("/tickets/new/", {"title": "Down", "form_key": key})

    assert f'value="{key}"' in response.content.decode()


def test_a_title_is_one_line(as_user, customer, product):
    form = {"title": "Down\r\nBcc: all\u2028now", "body": "It", "product": product.pk, "priority": "low"}

    as_user(customer).post("/tickets/new/", form)

    assert Ticket.objects.get().title == "Down Bcc: all now"


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": ""},
        {"title": "x" * 10_000},
        {"title": "a\x00b"},
        {"body": ""},
        {"body": "x" * 20_001},
        {"body": "a\x00b"},
        {"product": ""},
        {"product": "4711"},
        {"product": "abc"},
        {"product": HUGE},
        {"product": "\x00"},
        {"priority": "urgent"},
        {"priority": "\x00"},
    ],
)
def test_a_wrong_field_is_named_and_the_rest_is_kept(as_user, customer, product, wrong):
    form = {"title": "Down", "body": "All of it", "product": product.pk, "priority": "critical", **wrong}

    response = as_user(customer).post("/tickets/new/", form)

    [field] = wrong
    assert response.status_code == 200
    assert list(response.context["form"].errors) == [field]
    assert "All of it" in texts(response) or field == "body"
    assert not Ticket.objects.exists()
    assert nothing_written()


def test_an_inactive_product_cannot_be_chosen(as_user, customer):
    retired = make_product("Retired", is_active=False)
    form = {"title": "Down", "body": "All of it", "product": retired.pk, "priority": "low"}

    response = as_user(customer).post("/tickets/new/", form)

    assert "product" in response.context["form"].errors


def test_half_an_emoji_is_stored_as_a_replacement_character(as_user, customer, product):
    body = f"title=Down+%ED%A0%BD&body=x&product={product.pk}&priority=low"

    as_user(customer).post("/tickets/new/", body, content_type="application/x-www-form-urlencoded")

    assert Ticket.objects.get().title == "Down \ufffd\ufffd\ufffd"


def test_a_ticket_that_takes_no_more_comes_back_with_its_form_filled(as_user, customer, product, monkeypatch):
    def retired(*args, **kwargs):
        raise actions.Conflict("This product takes no new tickets.")

    monkeypatch.setattr(actions, "open_ticket", retired)
    form = {"title": "Down", "body": "All of <it>", "product": product.pk, "priority": "low"}

    response = as_user(customer).post("/tickets/new/", form)

    assert "All of &lt;it&gt;</textarea>" in texts(response)

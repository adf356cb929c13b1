"""tickets/admin.py: everything is there to be read, and no rule is bypassed."""

import pytest

from accounts.models import User
from tests.factories import make_product, make_ticket
from tickets import actions
from tickets.models import Product

pytestmark = pytest.mark.django_db

FORM = {
    "name": "Shop",
    "slug": "shop",
    "description": "",
    "is_active": "on",
    "sla_critical_minutes": 1,
    "sla_high_minutes": 480,
    "sla_medium_minutes": 1440,
    "sla_low_minutes": 4320,
    "new_slack_webhook_url": "",
}


@pytest.fixture
def browser(as_user, admin):
    return as_user(admin)


@pytest.fixture
def ticket(customer, product, agent):
    ticket = make_ticket(customer, product)
    actions.comment(agent, ticket.pk, "Between us", internal=True)
    return ticket


@pytest.mark.parametrize("model", ["product", "ticket", "comment", "ticketevent"])
def test_every_list_and_page_opens(browser, ticket, model):
    records = f"/admin/tickets/{model}/"
    pks = {"product": ticket.product_id, "ticket": ticket.pk}
    pk = pks.get(model) or (ticket.comments if model == "comment" else ticket.events).get().pk

    assert browser.get(records).status_code == 200
    assert browser.get(f"{records}{pk}/change/").status_code == 200


@pytest.mark.parametrize(("role", "is_led"), [("admin", True), ("customer", False)])
def test_to_the_page_of_a_ticket_is_led_who_may_see_it_there(browser, admin, ticket, role, is_led):
    User.objects.filter(pk=admin.pk).update(role=role)

    page = browser.get(f"/admin/tickets/ticket/{ticket.pk}/change/").content.decode()

    assert ("View on site" in page) is is_led


@pytest.mark.parametrize("model", ["ticket", "comment", "ticketevent"])
@pytest.mark.parametrize("step", ["add/", "{pk}/delete/"])
def test_records_are_read_only(browser, ticket, model, step):
    assert browser.get(f"/admin/tickets/{model}/{step.format(pk=ticket.pk)}").status_code in (302, 403)
    assert browser.post(f"/admin/tickets/{model}/{step.format(pk=ticket.pk)}", {"post": "yes"}).status_code in (
        302,
        403,
    )


def test_a_ticket_is_not_changed_behind_its_history(browser, ticket):
    response = browser.post(f"/admin/tickets/ticket/{ticket.pk}/change/", {"status": "closed"})

    ticket.refresh_from_db()
    assert (response.status_code, ticket.status) == (403, "open")


def test_a_product_is_made_with_its_webhook(browser):
    browser.post("/admin/tickets/product/add/", FORM | {"new_slack_webhook_url": "https://hooks.example.com/1"})

    product = Product.objects.get()
    assert (product.slack_webhook_url, product.sla_critical_minutes) == ("https://hooks.example.com/1", 1)


def test_an_empty_field_keeps_the_webhook(browser):
    product = make_product(slack_webhook_url="https://hooks.example.com/1")

    browser.post(f"/admin/tickets/product/{product.pk}/change/", FORM)

    product.refresh_from_db()
    assert product.slack_webhook_url == "https://hooks.example.com/1"


def test_the_webhook_can_be_removed(browser):
    product = make_product(slack_webhook_url="https://hooks.example.com/1")

    browser.post(f"/admin/tickets/product/{product.pk}/change/", FORM | {"removes_slack_webhook": "on"})

    product.refresh_from_db()
    assert product.slack_webhook_url == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "SHOP NO 1", "slug": "other"},
        {"slug": "shop-no-1", "name": "Other"},
        {"sla_critical_minutes": 0},
        {"sla_low_minutes": 99_999_999_999},
        {"new_slack_webhook_url": "ftp://hooks.example.com/1"},
        {"name": "a\x00b"},
    ],
)
def test_a_wrong_product_is_refused(browser, wrong):
    make_product("Shop no 1")

    response = browser.post("/admin/tickets/product/add/", FORM | {"name": "New", "slug": "new"} | wrong)

    assert response.status_code == 200
    assert Product.objects.count() == 1


def test_a_new_product_is_asked_only_what_it_can_have(as_user, admin):
    page = as_user(admin).get("/admin/tickets/product/add/").content.decode()

    assert "field-created_at" not in page
    assert "field-removes_slack_webhook" not in page
    assert "field-new_slack_webhook_url" in page
    assert ">Stega</a>" in page

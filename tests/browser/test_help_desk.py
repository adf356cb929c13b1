"""The help desk as customers and agents use it."""

import re

import pytest
from django.utils import translation
from django.utils.translation import gettext
from playwright.sync_api import expect

from tests.browser import looks
from tests.browser.visitor import PHONE
from tests.factories import PASSWORD, make_product, make_ticket
from tickets.models import Ticket

OF_A_TICKET = re.compile(r"/tickets/\d+/$")


@pytest.fixture(autouse=True)
def shop(product):
    """The one product, which a new ticket is about unless its author says otherwise."""
    return product


def open_ticket(page, word=str):
    page.goto("/tickets/new/")
    page.get_by_label(word("Title")).fill("It is broken")
    page.get_by_label(word("Description")).fill("Nothing happens.")
    page.get_by_role("button", name=word("Open ticket")).click()
    expect(page).to_have_url(OF_A_TICKET)


def write_comment(page, text, word=str):
    page.get_by_label(word("Comment"), exact=True).fill(text)
    page.get_by_role("button", name=word("Add comment")).click()
    expect(page.locator("article.comment").last).to_contain_text(text)


def set_status(page, status, word=str):
    step = page.locator("form.step").filter(has_text=word("New status"))
    step.get_by_label(word("New status")).select_option(label=word(status))
    step.get_by_role("button", name=word("Set")).click()
    expect(page.locator("dl.facts .badge").first).to_have_text(word(status))


@pytest.mark.parametrize("language", ["en", "pt-br"])
@pytest.mark.parametrize("device", [{}, {"width": PHONE, "scheme": "dark"}, {"javascript": False}], ids=str)
def test_a_ticket_goes_from_its_opening_to_its_end(visit, customer, agent, language, device):
    def word(msgid):
        with translation.override(language):
            return gettext(msgid)

    asking = visit(customer, language=language, **device).page
    answering = visit(agent, language=language, **device).page

    open_ticket(asking, word)
    expect(asking.locator(".deadline:visible").first).to_have_attribute("title", re.compile("UTC"))
    write_comment(asking, "Since Tuesday.", word)
    answering.goto("/tickets/")
    answering.get_by_role("link", name="It is broken").click()
    answering.get_by_role("button", name=word("Take this ticket")).click()
    write_comment(answering, "Mended now.", word)
    for status in ("In progress", "Resolved", "Closed"):
        set_status(answering, status, word)
    asking.reload()

    expect(asking.locator(".discussion")).to_contain_text("Mended now.")
    expect(asking.locator(".discussion")).to_contain_text(word("This ticket is closed and takes no more comments."))


def test_a_double_click_opens_one_ticket(visit, customer):
    page = visit(customer).page
    page.goto("/tickets/new/")
    page.get_by_label("Title").fill("It is broken")
    page.get_by_label("Description").fill("Nothing happens.")

    page.get_by_role("button", name="Open ticket").dblclick()

    expect(page).to_have_url(OF_A_TICKET)
    assert Ticket.objects.count() == 1


def test_a_form_whose_first_answer_was_lost_opens_one_ticket(visit, customer):
    page = visit(customer).page
    page.goto("/tickets/new/")
    page.get_by_label("Title").fill("It is broken")
    page.get_by_label("Description").fill("Nothing happens.")
    form = page.evaluate("Object.fromEntries(new FormData(document.querySelector('main form')))")
    page.context.request.post("/tickets/new/", form=form, headers={"Referer": page.url})
    assert Ticket.objects.count() == 1

    page.get_by_role("button", name="Open ticket").click()

    expect(page).to_have_url(OF_A_TICKET)
    assert Ticket.objects.count() == 1


def test_a_double_click_adds_one_comment(visit, customer, shop):
    ticket = make_ticket(customer, shop)
    page = visit(customer).page
    page.goto(ticket.get_absolute_url())
    page.get_by_label("Comment").fill("Since Tuesday.")

    page.get_by_role("button", name="Add comment").dblclick()

    expect(page.locator("article.comment")).to_have_count(1)
    assert ticket.comments.count() == 1


def test_the_error_of_a_field_is_tied_to_it(visit, customer):
    page = visit(customer).page
    page.goto("/tickets/new/")

    page.get_by_role("button", name="Open ticket").click()

    for label in ("Title", "Description"):
        field = page.get_by_label(label)
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_accessible_description(re.compile(r"This field is required\.$"))


@pytest.mark.parametrize("back", ["the button", "the address"])
def test_who_goes_back_after_signing_out_sees_nothing_private(visit, customer, shop, back):
    ticket = make_ticket(customer, shop, title="A private matter")
    page = visit(customer).page
    page.goto(ticket.get_absolute_url())
    expect(page.locator("h1")).to_have_text("A private matter")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login/")

    if back == "the button":
        page.go_back()
    else:
        page.goto(ticket.get_absolute_url())

    expect(page.get_by_label("Password")).to_be_visible()
    expect(page.locator("body")).not_to_contain_text("A private matter")


def test_times_are_those_of_the_users_own_zone(visit, customer, shop):
    customer.time_zone = "America/Sao_Paulo"
    customer.save()
    ticket = make_ticket(customer, shop)
    page = visit(customer).page

    page.goto(ticket.get_absolute_url())

    expect(page.locator("p.meta time")).to_have_attribute("title", re.compile(r"\(America/Sao_Paulo\)$"))


class Keyboard:
    """A person without a mouse."""

    def __init__(self, page):
        self.page = page

    def go_to(self, matches):
        """Press Tab until the focus is where it should be; every stop is marked, in sight and after the one before."""
        here = looks.focus(self.page)
        if matches(here):
            return
        before = here["order"]
        for _stop in range(60):
            self.page.keyboard.press("Tab")
            stop = looks.focus(self.page)
            assert stop["isMarked"], stop
            assert stop["isInSight"], stop
            assert stop["order"] > before or before < 3, stop
            before = stop["order"]
            if matches(stop):
                return
        raise AssertionError("the keyboard does not get there")

    def field(self, name):
        self.go_to(lambda stop: stop["name"] == name)

    def control(self, text):
        self.go_to(lambda stop: stop["text"] == text)

    def type(self, text):
        self.page.keyboard.type(text)

    def press(self, key="Enter"):
        self.page.keyboard.press(key)


def test_a_ticket_is_opened_and_answered_without_a_mouse(visit, customer):
    page = visit().page
    keyboard = Keyboard(page)
    page.goto("/accounts/login/")

    keyboard.field("username")
    keyboard.type(customer.username)
    keyboard.field("password")
    keyboard.type(PASSWORD)
    keyboard.press()
    page.wait_for_url("**/tickets/")
    keyboard.control("Skip to the content")
    keyboard.press()
    keyboard.control("New ticket")
    keyboard.press()
    page.wait_for_url("**/new/")
    keyboard.field("title")
    keyboard.type("It is broken")
    keyboard.field("body")
    keyboard.type("Nothing happens.")
    keyboard.control("Open ticket")
    keyboard.press()
    page.wait_for_url(OF_A_TICKET)
    keyboard.field("body")
    keyboard.type("Since Tuesday.")
    keyboard.control("Add comment")
    keyboard.press()

    expect(page.locator("article.comment")).to_contain_text("Since Tuesday.")


def test_the_skip_link_leads_past_the_bar(visit, customer):
    page = visit(customer).page
    keyboard = Keyboard(page)
    page.goto("/tickets/")

    keyboard.press("Tab")
    assert looks.focus(page)["text"] == "Skip to the content"
    keyboard.press()
    keyboard.press("Tab")

    assert looks.focus(page)["text"] == "New ticket"


@pytest.mark.parametrize("who", ["customer", "agent", "admin"])
def test_the_keyboard_meets_every_control_of_a_page_in_its_order(visit, request, customer, shop, who):
    ticket = make_ticket(customer, make_product("Other"))
    page = visit(request.getfixturevalue(who)).page
    for address in ("/tickets/", "/tickets/new/", ticket.get_absolute_url(), "/accounts/profile/"):
        page.goto(address)
        controls = page.locator("a[href]:visible, button:visible, :is(input, select, textarea):visible").count()

        stops = []
        for _control in range(controls):
            page.keyboard.press("Tab")
            stops.append(looks.focus(page))

        assert [stop["order"] for stop in stops] == sorted({stop["order"] for stop in stops})
        assert all(stop["isMarked"] and stop["isInSight"] for stop in stops)

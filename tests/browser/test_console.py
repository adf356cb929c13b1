"""The console as operators use it."""

import re
import time

import pytest
from django.conf import settings as django_settings
from django.db import connections
from playwright.sync_api import expect

from operations.models import OperatorAction, State
from tests.browser import pages
from tests.support import servers
from tests.support.console import WORKER, letters_of_three_causes
from tests.support.letters import bury

DEAD_LETTERS = "/admin/operations/dead-letters/"
REASON = "The mail server works again"


def replay(page, cause, reason=REASON):
    """Ask for the replay of a group, as its row offers it, and give the reason."""
    page.goto(DEAD_LETTERS)
    page.get_by_role("row").filter(has_text=cause).get_by_role("link", name="Replay").click()
    page.get_by_label("Reason").fill(reason)
    page.get_by_role("button", name="Replay a group of dead letters").click()


def sizes_of_groups(page):
    page.goto(DEAD_LETTERS)
    return page.locator("td.big").all_inner_texts()


def test_five_hundred_dead_letters_of_three_causes_show_as_three_groups(visit, letters, viewer):
    page = visit(viewer).page

    assert sorted(sizes_of_groups(page)) == ["150", "300", "50"]
    page.get_by_role("link", name="bad payload: ticket.welcome lacks email").click()
    expect(page.locator("dl.figures")).to_contain_text("150")


def test_an_operator_replays_a_group_and_sees_the_record(visit, start, event_log, mailbox, customer, operator):
    payload = f'{{"user_id": {customer.pk}, "email": "{customer.email}", "display_name": "Customer"}}'
    bury(django_settings.PGQUE_QUEUE, WORKER, "email to user:%s given up: no answer", count=20, payload=payload)
    start("qcluster", saying="ready for work")
    start("pgque_ticker")
    start("notification_worker")
    page = visit(operator).page

    replay(page, "no answer")

    expect(page.locator("#live .badge")).to_have_text("handed over", timeout=30_000)
    expect(page.locator("dl.figures")).to_contain_text("20")
    expect(page.locator("#live")).to_contain_text(REASON)
    assert mailbox.addresses().count(customer.email) == 20
    assert sizes_of_groups(page) == []
    page.get_by_role("link", name="Record of actions").click()
    expect(page.get_by_role("row").filter(has_text="replay a group")).to_contain_text("handed over")


def test_a_group_whose_first_letter_fails_again_is_left_alone(visit, start, letters, operator):
    start("qcluster", saying="ready for work")
    start("pgque_ticker")
    start("notification_worker")
    page = visit(operator).page

    replay(page, "unknown event type")

    expect(page.locator("#live .badge")).to_have_text("stopped", timeout=30_000)
    assert OperatorAction.objects.get().touched == 1
    assert sorted(sizes_of_groups(page)) == ["150", "300", "50"]


def test_an_operator_who_gives_no_reason_is_asked_for_it_and_nothing_is_done(visit, letters, operator):
    page = visit(operator).page

    replay(page, "unknown event type", reason="")

    expect(page.get_by_label("Reason")).to_have_attribute("aria-invalid", "true")
    assert not OperatorAction.objects.exists()


def test_a_double_click_asks_for_one_replay(visit, letters, operator):
    page = visit(operator).page
    page.goto(DEAD_LETTERS)
    page.get_by_role("row").filter(has_text="unknown event type").get_by_role("link", name="Replay").click()
    page.get_by_label("Reason").fill(REASON)

    page.get_by_role("button", name="Replay a group of dead letters").dblclick()

    expect(page).to_have_url(re.compile(r"/record/\d+/$"))
    assert [action.state for action in OperatorAction.objects.all()] == [State.REQUESTED]


def test_a_viewer_sees_everything_and_is_offered_no_action(visit, letters, everything, viewer):
    page = visit(viewer).page
    addresses = pages.of_console(letters)
    questions = {name: addresses.pop(name) for name in ("replay", "purge")}

    offered = {name: page.locator("main a[href*='/do/']").count() for name in addresses if page.goto(addresses[name])}
    answers = [page.goto(address).status for address in questions.values()]

    assert offered == dict.fromkeys(addresses, 0)
    assert answers == [403, 403]


@pytest.fixture
def events_away(letters):
    """Stop the `events` server; it is back after the test."""

    def stop():
        connections["events"].close()
        servers.events.stop()

    yield stop
    servers.events.start()


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "The database “events” cannot be reached."),
        ("pt-br", "O banco de dados “events” não pode ser alcançado."),
    ],
)
def test_with_the_events_server_stopped_each_page_of_its_own_says_so_soon(
    visit, events_away, viewer, language, sentence
):
    page = visit(viewer, language=language).page
    events_away()

    for name in ("", "queues/", "consumers/", "tickers/", "retries/", "dead-letters/"):
        began = time.monotonic()
        page.goto(f"/admin/operations/{name}")

        assert time.monotonic() - began < 2
        expect(page.locator("main")).to_contain_text(sentence)


def test_a_table_renews_itself_and_keeps_the_place_of_the_keyboard(visit, letters, viewer):
    page = visit(viewer).page
    page.clock.install()
    page.goto(DEAD_LETTERS)
    link = page.get_by_role("link", name="bad payload: ticket.welcome lacks email")
    link.focus()
    bury(django_settings.PGQUE_QUEUE, WORKER, "a fourth cause", count=7)

    page.clock.run_for(11_000)

    expect(page.locator("td.big")).to_have_count(4)
    expect(link).to_be_focused()


def test_a_chart_that_is_open_as_a_table_stays_open_when_it_renews_itself(visit, everything, viewer):
    page = visit(viewer).page
    page.clock.install()
    page.goto("/admin/operations/")
    page.get_by_text("As a table").first.click()
    page.locator("#live").evaluate("part => part.classList.add('of-before')")

    page.clock.run_for(11_000)

    expect(page.locator("#live.of-before")).to_have_count(0)
    expect(page.locator("details").first).to_have_attribute("open", "")


def test_the_overview_draws_its_charts(visit, everything, viewer):
    page = visit(viewer).page

    page.goto("/admin/operations/")

    expect(page.locator("figure.chart")).to_have_count(3)
    expect(page.locator("figure.chart svg").first).to_be_visible()


def test_without_javascript_an_operator_does_the_same(visit, letters, everything, operator):
    visitor = visit(operator, javascript=False)
    page = visitor.page

    for address in pages.of_console(letters).values():
        assert page.goto(address).status == 200
        expect(page.locator("h1")).not_to_be_empty()
    replay(page, "unknown event type")

    expect(page.locator("#live .badge")).to_have_text("requested")


def test_letters_that_are_new_since_the_page_was_read_show_when_it_is_loaded_again(visit, event_log, viewer):
    page = visit(viewer, javascript=False).page
    assert sizes_of_groups(page) == []

    letters_of_three_causes(django_settings.PGQUE_QUEUE)
    page.reload()

    expect(page.locator("td.big")).to_have_count(3)

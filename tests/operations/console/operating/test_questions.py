import re
import uuid

import pytest
from django.db import connections
from django.urls import reverse

from operations.models import Kind, OperatorAction
from tests.operations.console.operating.asking import REASON, address, confirm, each_kind


@each_kind
def test_the_question_tells_how_many_rows_it_is_about(browser, targets, kind):
    target, count = targets[kind]

    text = browser.get(address(kind, target)).content.decode()

    assert f"<strong>{count}</strong>" in text
    assert not OperatorAction.objects.exists()


@each_kind
def test_no_two_things_of_the_question_have_the_same_name(browser, targets, kind):
    text = browser.get(address(kind, targets[kind][0])).content.decode()

    names = re.findall(r"<(?:dt|label)[^>]*>([^<]+)<", text)
    assert "Reason" in names
    assert [name for name in names if names.count(name) > 1] == []


@each_kind
def test_a_target_that_is_gone_is_said_to_be_gone(browser, targets, take_away, kind):
    target, _count = targets[kind]
    take_away(kind)

    asked = browser.get(address(kind, target))
    answered = browser.post(address(kind, target), {"reason": REASON, "key": uuid.uuid4()})

    assert (asked.status_code, answered.status_code) == (410, 410)
    assert "There is nothing left to do this to" in answered.content.decode()
    assert not OperatorAction.objects.exists()


@each_kind
def test_an_action_needs_a_reason(browser, targets, kind):
    target, _count = targets[kind]

    response = confirm(browser, address(kind, target), reason="  ")

    assert response.status_code == 200
    assert "This field is required." in response.content.decode()
    assert not OperatorAction.objects.exists()


@pytest.mark.parametrize("kind", [Kind.REPLAY_LETTER, Kind.PURGE_LETTER, Kind.REPLAY_GROUP, Kind.PURGE_GROUP])
def test_while_the_event_log_is_away_nothing_is_done_and_the_page_says_so(browser, targets, monkeypatch, kind):
    target, _count = targets[kind]
    connections["events"].close()
    monkeypatch.setitem(connections["events"].settings_dict, "HOST", "/nowhere")

    response = browser.post(address(kind, target), {"reason": REASON, "key": uuid.uuid4()})

    monkeypatch.undo()
    assert response.status_code == 503
    assert "The database “events” cannot be reached." in response.content.decode()
    assert "Nothing has been done." in response.content.decode()
    assert not OperatorAction.objects.exists()


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("replay_letter", {"id": "x"}),
        ("replay_letter", {}),
        ("replay_group", {"queue": "q"}),
        ("retry_entry", {"key": "no key"}),
        ("retry_entry", {"key": "\x00"}),
        ("settle_entry", {"key": "no key"}),
        ("replay_letter", {"id": "-1"}),
        ("replay_letter", {"id": "1_2"}),
        ("replay_letter", {"id": " 12 "}),
        ("replay_letter", {"id": "\u0661\u0662"}),
        ("purge_letter", {"id": str(2**63)}),
        ("purge_letter", {"id": "9" * 5000}),
        ("purge_group", {"queue": "q", "consumer": "c", "type": "\x00", "cause": ""}),
        ("run_schedule", {"name": "\x00"}),
        ("launch_rocket", {}),
    ],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_an_address_that_names_nothing_is_not_found(browser, kind, target, method):
    response = getattr(browser, method)(address(kind, target), {} if method == "get" else {"reason": REASON})

    assert response.status_code == 404


@pytest.mark.parametrize(
    ("kind", "page"), [("run_schedule", "tasks"), ("retry_entry", "outbox"), ("launch_rocket", "actions")]
)
def test_an_address_that_names_nothing_leads_to_the_page_where_one_begins(browser, settings, kind, page):
    settings.DEBUG = True

    text = browser.get(address(kind, {})).content.decode()

    assert "Begin with a button on the page of what you want to change." in text
    assert f'<a class="button" href="{reverse(f"operations:{page}")}">' in text

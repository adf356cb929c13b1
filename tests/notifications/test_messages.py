"""Wording as a table: every event type, both languages, three media."""

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.urls import resolve
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st

from notifications import messages
from notifications.messages import Circumstances, Reason
from tickets.sla import Priority
from tickets.workflow import Status

BASE_URL = "https://help.example.com"
PAYLOADS: dict[str, dict[str, Any]] = {
    "ticket.welcome": {"user_id": 5, "email": "customer@example.com", "display_name": "customer"},
    "ticket.sla_breached": {
        "ticket_id": 12,
        "title": "Printer on fire",
        "priority": "critical",
        "product_name": "Printers",
        "elapsed_hours": 4,
    },
    "ticket.assigned": {"ticket_id": 12, "title": "Printer on fire", "assignee_id": 7, "actor_id": 1},
    "ticket.status_changed": {
        "ticket_id": 12,
        "title": "Printer on fire",
        "old_status": "open",
        "new_status": "in_progress",
        "actor_id": 7,
    },
    "ticket.comment_added": {"ticket_id": 12, "title": "Printer on fire", "comment_id": 3, "author_id": 7},
    "ticket.resolved": {"ticket_id": 12, "title": "Printer on fire", "actor_id": 7},
    "report.weekly_ready": {
        "product_id": 3,
        "product_name": "Printers",
        "period": "7d",
        "stats": {
            "open_count": 41,
            "in_progress_count": 42,
            "resolved_count": 43,
            "created_last_7d": 44,
            "resolved_last_7d": 45,
            "avg_resolution_hours": 6.5,
        },
    },
}


def mail(event_type, *, language="en", seen=messages.UNKNOWN, **changes):
    payload = {**PAYLOADS[event_type], **changes}
    return messages.mail(event_type, payload, language=language, base_url=BASE_URL, seen=seen)


def post(*, language="en", seen=messages.UNKNOWN, **changes):
    payload = {**PAYLOADS["ticket.sla_breached"], **changes}
    return messages.slack("ticket.sla_breached", payload, language=language, base_url=BASE_URL, seen=seen).text


def visible(markup):
    """The text that a mail program shows of an HTML part."""
    body = markup.split("<body", 1)[1].split(">", 1)[1]
    return html.unescape(re.sub(r"<[^>]*>", "", body))


@pytest.mark.parametrize(
    ("event_type", "subject"),
    [
        ("ticket.welcome", "Welcome to Stega"),
        ("ticket.sla_breached", "[#12] SLA breached: Printer on fire"),
        ("ticket.assigned", "[#12] Assigned to you: Printer on fire"),
        ("ticket.status_changed", "[#12] Status changed: Printer on fire"),
        ("ticket.comment_added", "[#12] New comment: Printer on fire"),
        ("ticket.resolved", "[#12] Resolved: Printer on fire"),
        ("report.weekly_ready", "Weekly report: Printers"),
    ],
)
def test_each_event_has_its_subject(event_type, subject):
    assert mail(event_type).subject == subject


@pytest.mark.parametrize(
    ("event_type", "told"),
    [
        ("ticket.welcome", ["customer", f"{BASE_URL}/"]),
        ("ticket.sla_breached", ["#12 Printer on fire", "Printers", "Critical", "4 hours", f"{BASE_URL}/tickets/12/"]),
        ("ticket.status_changed", ["Open", "In progress", f"{BASE_URL}/tickets/12/"]),
        ("report.weekly_ready", ["41", "42", "43", "44", "45", "6.5 h"]),
    ],
)
def test_text_and_html_tell_the_same_facts(event_type, told):
    wording = mail(event_type)

    assert [fact for fact in told if fact not in wording.text] == []
    assert [fact for fact in told if fact not in wording.html] == []


def test_a_product_that_resolved_nothing_has_no_average():
    stats = {**PAYLOADS["report.weekly_ready"]["stats"], "avg_resolution_hours": None}

    assert "Average time to resolution: nothing resolved yet" in mail("report.weekly_ready", stats=stats).text


def test_an_elapsed_time_below_an_hour_is_not_called_zero():
    assert "Open for: less than an hour\n" in mail("ticket.sla_breached", elapsed_hours=0).text


@pytest.mark.parametrize("event_type", PAYLOADS)
def test_every_event_has_a_name_for_staff(event_type):
    assert messages.event_name(event_type) != event_type


def test_an_event_of_a_later_version_is_named_by_its_type():
    assert messages.event_name("ticket.merged") == "ticket.merged"


def test_an_alert_says_the_deadline_and_the_minutes_below_an_hour():
    seen = Circumstances(due_at=datetime(2026, 3, 1, 9, 1, tzinfo=UTC), open_for=timedelta(minutes=3, seconds=59))

    told = [mail("ticket.sla_breached", elapsed_hours=0, seen=seen).text, post(elapsed_hours=0, seen=seen)]

    for text in told:
        assert "Deadline: March 1, 2026, 9:01 a.m. (UTC)\nOpen for: 3 min" in text


def test_a_deadline_is_told_in_the_zone_of_its_reader():
    seen = Circumstances(due_at=datetime(2026, 3, 1, 23, 30, tzinfo=UTC), zone=ZoneInfo("Asia/Tokyo"))

    assert "Deadline: March 2, 2026, 8:30 a.m. (Asia/Tokyo)\n" in mail("ticket.sla_breached", seen=seen).text


@pytest.mark.parametrize(
    ("event_type", "said"),
    [
        ("ticket.assigned", "Ana assigned this ticket to you."),
        ("ticket.status_changed", "Ana changed the status of your ticket."),
        ("ticket.comment_added", "Ana wrote on this ticket:"),
        ("ticket.resolved", "Ana resolved your ticket."),
    ],
)
def test_a_mail_says_who_did_it(event_type, said):
    wording = mail(event_type, seen=Circumstances(actor="Ana"))

    assert said in wording.text
    assert said in wording.html


def test_a_mail_about_a_comment_quotes_it():
    wording = mail("ticket.comment_added", seen=Circumstances(comment="First <b>\r\n\r\nSecond\n-- \nForged"))

    assert "\n> First <b>\n>\n> Second\n> --\n> Forged\n" in wording.text
    assert "First &lt;b&gt;\n\nSecond\n--\nForged</blockquote>" in wording.html


def test_a_long_comment_is_cut():
    assert mail("ticket.comment_added", seen=Circumstances(comment="x" * 20_000)).text.count("x") < 2_020


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("author", "because you opened the ticket."),
        ("assignee", "because the ticket is assigned to you."),
        ("admin", "because you are an admin and no assignee of the ticket can be told."),
    ],
)
@pytest.mark.parametrize("event_type", ["ticket.sla_breached", "ticket.comment_added"])
def test_a_mail_says_exactly_why_it_comes(event_type, reason, why):
    assert mail(event_type, seen=Circumstances(Reason(reason))).text.endswith(f"-- \nYou get this mail {why}\n")


@pytest.mark.parametrize(
    ("assignee", "next_step"), [("Ana", "write a comment: Ana is told."), ("", "write a comment on the ticket.")]
)
def test_a_resolved_mail_promises_only_what_happens(assignee, next_step):
    seen = Circumstances(assignee=assignee)

    assert f"If the problem is still there, {next_step}" in mail("ticket.resolved", seen=seen).text


def test_one_hour_is_singular():
    assert "1 hour\n" in mail("ticket.sla_breached", elapsed_hours=1).text


@pytest.mark.parametrize("event_type", PAYLOADS)
def test_every_mail_says_why_it_comes_and_where_to_look(event_type):
    wording = mail(event_type)

    assert "\n-- \nYou get this mail" in wording.text
    assert f"\n{BASE_URL}/" in wording.text


def test_the_link_to_a_ticket_is_the_address_of_its_page():
    assert resolve("/tickets/12/").view_name == "tickets:detail"


@pytest.mark.parametrize("language", ["en", "pt-br"])
@pytest.mark.parametrize("event_type", PAYLOADS)
def test_every_mail_marks_its_language(event_type, language):
    assert f'<html lang="{language}">' in mail(event_type, language=language).html


def test_a_portuguese_mail_is_portuguese():
    wording = mail("ticket.sla_breached", language="pt-br", elapsed_hours=1)

    assert wording.subject == "[#12] SLA violado: Printer on fire"
    assert "Prioridade: Crítica" in wording.text
    assert "1 hora\n" in wording.text


def test_subject_and_text_are_literal_and_html_is_escaped_once():
    wording = mail("ticket.assigned", title="Can't log in & retry <5 times>")

    assert wording.subject == "[#12] Assigned to you: Can't log in & retry <5 times>"
    assert "#12 Can't log in & retry <5 times>" in wording.text
    assert "#12 Can&#x27;t log in &amp; retry &lt;5 times&gt;" in wording.html


def test_markup_in_a_title_is_shown_as_text():
    title = "<img src=x onerror=1><a href=https://evil.example>invoice</a>"

    wording = mail("ticket.assigned", title=title)

    assert title in visible(wording.html)
    assert "<img" not in wording.html


@pytest.mark.parametrize("line_break", ["\r\n", "\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"])
def test_a_line_break_in_a_title_makes_no_second_line(line_break):
    wording = mail("ticket.assigned", title=f"Down{line_break}Bcc: boss@example.com")

    assert wording.subject == "[#12] Assigned to you: Down Bcc: boss@example.com"


def test_a_long_title_is_cut():
    wording = mail("ticket.assigned", title="x" * 10_000)

    assert len(wording.subject) == messages.SUBJECT_LIMIT
    assert len(wording.text) < 1_000


def test_a_title_with_percent_signs_is_no_format():
    assert mail("ticket.assigned", title="100%s %(title)s").subject == "[#12] Assigned to you: 100%s %(title)s"


def test_a_status_of_a_later_version_is_shown_as_it_is():
    assert "Now: on_hold" in mail("ticket.status_changed", new_status="on_hold").text


@pytest.mark.parametrize("language", ["en", "pt-br"])
@pytest.mark.parametrize("status", Status)
def test_a_mail_says_a_status_as_the_page_does(status, language):
    text = mail("ticket.status_changed", language=language, old_status=status, new_status=status).text

    with override(language):
        assert f": {status.label}\n" in text


@pytest.mark.parametrize("language", ["en", "pt-br"])
@pytest.mark.parametrize("priority", Priority)
def test_mail_and_post_say_a_priority_as_the_page_does(priority, language):
    told = mail("ticket.sla_breached", language=language, priority=priority).text
    posted = post(language=language, priority=priority)

    with override(language):
        assert f": {priority.label}\n" in told
        assert f": {priority.label}\n" in posted


def test_the_post_links_to_the_ticket_and_names_the_product():
    assert post().splitlines() == [
        f":rotating_light: *SLA breached*: <{BASE_URL}/tickets/12/|#12 Printer on fire>",
        "Product: Printers",
        "Priority: Critical",
        "Open for: 4 hours",
    ]


def test_no_text_of_a_person_is_markup_for_slack():
    hostile = "<!channel> <https://evil.example|reset your password> <@U123> &lt;"

    text = post(title=hostile, product_name=hostile, priority=hostile)

    assert text.count("<") == 1
    assert text.count("&lt;!channel&gt;") == 3
    assert text.count("&amp;lt;") == 3


def test_the_longest_post_stays_within_what_slack_takes():
    assert len(post(title="&" * 10_000, product_name="<" * 10_000, priority=">" * 10_000)) < 3_000


@given(st.text(st.characters(codec=None)), st.sampled_from(["en", "pt-br"]))
def test_hostile_text_never_becomes_structure(text, language):
    wording = mail("ticket.sla_breached", language=language, title=text, product_name=text)
    comment = mail("ticket.comment_added", language=language, seen=Circumstances(comment=text, actor=text))
    slack = post(language=language, title=text, product_name=text)

    assert len(wording.subject.splitlines()) == 1
    assert re.findall(r"<[a-z]+", wording.html) == re.findall(r"<[a-z]+", mail("ticket.sla_breached").html)
    assert set(re.findall(r"<[a-z]+", comment.html)) <= set(re.findall(r"<[a-z]+", wording.html)) | {"<blockquote"}
    assert len(slack.splitlines()) == 4
    assert slack.count("<") == slack.count(">") == 1

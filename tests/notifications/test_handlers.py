"""Who is told, as a table; then what arrives, through real receivers."""

import uuid
from datetime import UTC, datetime

import pytest

from accounts.models import User
from notifications.handlers import NOTICES, handle, handlers_of
from notifications.models import Delivery, State
from notifications.notice import Channel
from stega.pgque.catalogue import EVENT_TYPES, NOTIFICATION_WORKER, SLA_BREACH_DISPATCHER
from stega.pgque.message import Message
from tests.notifications import audience
from tests.notifications.conftest import TICKET_ID
from tests.notifications.test_messages import PAYLOADS

pytestmark = pytest.mark.django_db

KEY = uuid.UUID("5f5fc7c0-0000-4000-8000-000000000001")


def message(event_type, *, key=KEY, **changes):
    payload = {**PAYLOADS[event_type], **changes}
    return Message(1, 1, event_type, payload, key, 1, datetime(2026, 3, 1, tzinfo=UTC))


def notices(event_type, **changes):
    return NOTICES[event_type](message(event_type, **changes))


def told(event_type, **changes):
    """The names of those who get a mail."""
    return [
        each.address.removesuffix("@example.com")
        for each in notices(event_type, **changes)
        if each.channel == Channel.EMAIL and not each.skip
    ]


def skipped(event_type, **changes):
    return {each.recipient: each.skip for each in notices(event_type, **changes) if each.skip}


def test_every_event_that_concerns_people_has_a_handler():
    assert NOTICES.keys() == {name for name, event_type in EVENT_TYPES.items() if event_type.consumers}


def test_a_breach_belongs_to_the_group_alone():
    assert handlers_of(SLA_BREACH_DISPATCHER).keys() == {"ticket.sla_breached"}
    assert "ticket.sla_breached" not in handlers_of(NOTIFICATION_WORKER)


def test_a_welcome_goes_to_the_user(people):
    assert told("ticket.welcome", user_id=people["author"].pk) == ["author"]


def test_a_welcome_goes_to_the_address_of_now(people):
    User.objects.filter(username="author").update(email="moved@example.com")

    assert told("ticket.welcome", user_id=people["author"].pk, email="author@example.com") == ["moved"]


def test_a_breach_is_told_to_the_assignee(ticket):
    assert told("ticket.sla_breached") == ["assignee"]


def test_a_breach_of_an_unassigned_ticket_is_told_to_every_admin(ticket):
    ticket(assignee_id=None)

    assert told("ticket.sla_breached") == ["admin", "admin2"]


def test_a_breach_is_told_to_active_admins_only(ticket, people):
    ticket(assignee_id=None)
    User.objects.filter(username="admin").update(is_active=False)

    assert told("ticket.sla_breached") == ["admin2"]
    assert skipped("ticket.sla_breached").keys() == {"product:3"}


def test_a_breach_is_told_to_admins_when_the_assignee_has_left(ticket, people):
    User.objects.filter(username="assignee").update(is_active=False)

    assert told("ticket.sla_breached") == ["admin", "admin2"]
    assert skipped("ticket.sla_breached")[f"user:{people['assignee'].pk}"] == "The user is inactive"


def test_a_breach_is_told_to_admins_when_the_assignee_has_no_address(ticket, people):
    User.objects.filter(username="assignee").update(email="")

    assert told("ticket.sla_breached") == ["admin", "admin2"]


def test_an_admin_who_is_the_assignee_is_told_once(ticket, people):
    ticket(assignee_id=people["admin"].pk)

    assert told("ticket.sla_breached") == ["admin"]


def test_a_breach_is_posted_to_the_products_channel(ticket):
    ticket(slack_webhook_url="https://hooks.example.com/verysecret")

    (post,) = [each for each in notices("ticket.sla_breached") if each.channel == Channel.SLACK]

    assert (post.recipient, post.address) == ("product:3", "Printers")
    assert post.target == "https://hooks.example.com/verysecret"
    assert "verysecret" not in repr(post)


def test_a_product_without_a_channel_is_recorded_as_such(ticket):
    assert skipped("ticket.sla_breached") == {"product:3": "The product has no Slack webhook"}


def test_an_assignment_is_told_to_the_assignee(ticket, people):
    assert told("ticket.assigned", assignee_id=people["assignee"].pk, actor_id=people["admin"].pk) == ["assignee"]


def test_who_takes_a_ticket_is_not_told(ticket, people):
    assert notices("ticket.assigned", assignee_id=people["assignee"].pk, actor_id=people["assignee"].pk) == []


def test_an_assignee_of_a_while_ago_is_not_told(ticket, people):
    ticket(assignee_id=people["admin"].pk)

    assert skipped("ticket.assigned", assignee_id=people["assignee"].pk, actor_id=people["admin"].pk) == {
        f"user:{people['assignee'].pk}": "No longer the assignee"
    }


@pytest.mark.parametrize("event_type", ["ticket.status_changed", "ticket.resolved"])
@pytest.mark.parametrize(("actor", "names"), [("assignee", ["author"]), ("author", []), (None, ["author"])])
def test_a_change_is_told_to_the_author_unless_they_made_it(ticket, people, event_type, actor, names):
    assert told(event_type, actor_id=people[actor].pk if actor else None) == names


@pytest.mark.parametrize(
    ("commenter", "names"),
    [("author", ["assignee"]), ("assignee", ["author"]), ("admin", ["author", "assignee"])],
)
def test_a_comment_is_told_to_author_and_assignee_except_its_writer(ticket, people, commenter, names):
    assert told("ticket.comment_added", author_id=people[commenter].pk) == names


def test_a_comment_is_told_once_to_who_is_author_and_assignee(ticket, people):
    ticket(assignee_id=people["author"].pk)

    assert told("ticket.comment_added", author_id=people["admin"].pk) == ["author"]


def test_a_comment_that_is_gone_or_not_for_the_reader_is_not_told(ticket, people, monkeypatch):
    monkeypatch.setattr(audience, "comments", {})

    assert set(skipped("ticket.comment_added", author_id=people["admin"].pk).values()) == {
        "The comment is gone, or not for this person"
    }


def texts(event_type, **changes):
    return {each.name: each.wording.text for each in notices(event_type, **changes)}


def test_a_comment_mail_says_who_wrote_what_and_why_each_is_told(ticket, people):
    mails = texts("ticket.comment_added", author_id=people["admin"].pk)

    assert "admin wrote on this ticket:\n\n> Have you tried water?" in mails["author"]
    assert "because you opened the ticket." in mails["author"]
    assert "because the ticket is assigned to you." in mails["assignee"]


def test_an_alert_says_the_deadline_the_minutes_and_why(ticket):
    ticket(assignee_id=None, slack_webhook_url="https://hooks.example.com/verysecret")

    mails = texts("ticket.sla_breached", elapsed_hours=0)

    assert "Deadline: March 1, 2026, 9:01 a.m. (UTC)\nOpen for: 3 min\n" in mails["admin"]
    assert "Open for: 3 min" in mails[""]
    assert "because you are an admin" in mails["admin"]


@pytest.mark.parametrize(("is_active", "told_of_comments"), [(True, True), (False, False)])
def test_a_resolved_mail_names_who_is_told_of_a_comment(ticket, people, is_active, told_of_comments):
    User.objects.filter(username="assignee").update(is_active=is_active)

    text = texts("ticket.resolved", actor_id=people["admin"].pk)["author"]

    assert "admin resolved your ticket." in text
    assert ("assignee is told" in text) == told_of_comments


def test_the_weekly_report_goes_to_every_active_admin(people):
    User.objects.filter(username="admin2").update(is_active=False)

    assert told("report.weekly_ready") == ["admin"]


def test_an_inactive_user_is_not_told_and_the_ledger_says_why(people, mailbox):
    User.objects.filter(username="author").update(is_active=False)

    handle(message("ticket.welcome", user_id=people["author"].pk))

    assert mailbox.received == []
    assert Delivery.objects.get().reason == "The user is inactive"


@pytest.mark.parametrize("event_type", sorted(name for name in NOTICES if name.startswith("ticket.")))
def test_a_ticket_or_user_that_is_gone_concerns_nobody(settings, monkeypatch, event_type):
    settings.AUDIENCE = "tests.notifications.audience"
    monkeypatch.setattr(audience, "tickets", {})

    handle(message(event_type))

    assert not Delivery.objects.exists()


def test_a_mail_speaks_the_language_of_its_reader(people, mailbox):
    User.objects.filter(username="author").update(language="pt-br")

    handle(message("ticket.welcome", user_id=people["author"].pk))

    assert '<html lang="pt-br">' in mailbox.received[0].message.get_body(("html",)).get_content()


def test_a_breach_arrives_by_mail_and_in_slack(ticket, mailbox, webhook):
    ticket(slack_webhook_url=webhook.url)

    handle(message("ticket.sla_breached"))

    assert mailbox.addresses() == ["assignee@example.com"]
    assert "#12 Printer on fire" in webhook.texts()[0]
    assert set(Delivery.objects.values_list("state", "ticket_id")) == {(State.SENT, TICKET_ID)}


def test_an_event_that_comes_again_tells_nobody_again(ticket, mailbox, webhook):
    ticket(slack_webhook_url=webhook.url)

    handle(message("ticket.sla_breached"))
    handle(message("ticket.sla_breached"))

    assert (len(mailbox.received), len(webhook.received)) == (1, 1)


def test_every_mail_is_marked_as_automatic(ticket, people, mailbox):
    names = {"user_id": people["author"].pk, "assignee_id": people["assignee"].pk, "author_id": people["admin"].pk}

    for event_type in NOTICES:
        handle(message(event_type, key=uuid.uuid4(), **{**names, "actor_id": people["admin"].pk}))

    assert {mail.message["Auto-Submitted"] for mail in mailbox.received} == {"auto-generated"}
    assert len(mailbox.received) >= len(NOTICES)


def test_a_hostile_display_name_harms_neither_mail_nor_neighbours(people, mailbox):
    User.objects.filter(username="admin").update(display_name='Doe, Jane "JD" <x>\nBcc: boss@example.com')

    handle(message("report.weekly_ready"))

    assert mailbox.addresses() == ["admin@example.com", "admin2@example.com"]
    assert [mail.message["Bcc"] for mail in mailbox.received] == [None, None]

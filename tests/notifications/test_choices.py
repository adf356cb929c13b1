"""What people chose not to be told: the rule as a table, the pages, and what the ledger says."""

import pytest

from accounts.models import User
from accounts.roles import Role
from notifications import actions
from notifications.forms import offered_to
from notifications.handlers import handle
from notifications.kinds import KIND_OF, Kind
from notifications.models import Delivery, MutedTicket, UnwantedKind, reasons_to_skip
from stega.pgque.catalogue import EVENT_TYPES
from tests.factories import make_ticket
from tests.notifications.conftest import TICKET_ID
from tests.notifications.test_handlers import message

pytestmark = pytest.mark.django_db

MUTED = "The user muted the ticket"
UNWANTED = "The user does not want this kind of mail"
ALWAYS_TOLD = ["ticket.welcome", "ticket.sla_breached"]


@pytest.mark.parametrize(
    ("event_type", "reason"),
    [
        ("ticket.status_changed", MUTED),
        ("ticket.resolved", MUTED),
        ("ticket.comment_added", MUTED),
        ("ticket.assigned", None),
        ("ticket.sla_breached", None),
    ],
)
def test_muting_ends_small_talk_and_nothing_else(customer, event_type, reason):
    actions.mute(customer, 12)

    assert reasons_to_skip(event_type, 12, [customer.pk]).get(customer.pk) == reason


def test_another_ticket_is_not_muted(customer):
    actions.mute(customer, 12)

    assert reasons_to_skip("ticket.resolved", 13, [customer.pk]) == {}


def test_another_person_is_told(customer, agent):
    actions.mute(customer, 12)
    actions.choose_kinds(customer, [], Kind.values)

    assert reasons_to_skip("ticket.comment_added", 12, [agent.pk]) == {}


@pytest.mark.parametrize("event_type", [name for name in EVENT_TYPES if name not in (*ALWAYS_TOLD, "ticket.created")])
def test_every_other_kind_can_be_switched_off(customer, event_type):
    actions.choose_kinds(customer, [], Kind.values)

    assert reasons_to_skip(event_type, None, [customer.pk]) == {customer.pk: UNWANTED}


@pytest.mark.parametrize("event_type", ALWAYS_TOLD)
def test_duties_and_the_welcome_cannot_be_switched_off(event_type):
    assert event_type not in KIND_OF


def test_what_is_not_told_is_in_the_ledger_with_the_reason(ticket, people, mailbox):
    actions.mute(people["author"], TICKET_ID)

    handle(message("ticket.comment_added", author_id=people["admin"].pk))

    assert mailbox.addresses() == ["assignee@example.com"]
    assert Delivery.objects.get(recipient=f"user:{people['author'].pk}").reason == MUTED


@pytest.mark.parametrize(
    ("role", "kinds"),
    [
        (Role.CUSTOMER, [Kind.STATUS, Kind.COMMENT]),
        (Role.AGENT, [Kind.ASSIGNMENT, Kind.STATUS, Kind.COMMENT]),
        (Role.ADMIN, list(Kind)),
    ],
)
def test_a_person_is_offered_what_their_role_gets(role, kinds):
    assert offered_to(User(role=role)) == kinds


def test_a_person_switches_kinds_off_and_on(as_user, customer):
    browser = as_user(customer)

    browser.post("/notifications/", {"kinds": ["status"]})
    off = list(UnwantedKind.objects.values_list("user", "kind"))
    browser.post("/notifications/", {"kinds": ["status", "comment"]})

    assert off == [(customer.pk, "comment")]
    assert not UnwantedKind.objects.exists()


def test_the_page_shows_what_was_chosen(as_user, customer):
    actions.choose_kinds(customer, ["status"], ["status", "comment"])

    page = as_user(customer).get("/notifications/").content.decode()

    assert page.count("checked") == 1
    assert 'value="report"' not in page


def test_what_was_not_offered_stays_as_it_was(as_user, admin):
    actions.choose_kinds(admin, [], ["report"])
    User.objects.filter(pk=admin.pk).update(role=Role.AGENT)

    as_user(admin).post("/notifications/", {"kinds": ["status", "comment", "assignment"]})

    assert list(UnwantedKind.objects.values_list("kind", flat=True)) == ["report"]


def test_a_kind_nobody_knows_is_refused(as_user, customer):
    answer = as_user(customer).post("/notifications/", {"kinds": ["welcome"]})

    assert answer.status_code == 200
    assert not UnwantedKind.objects.exists()


def test_the_author_mutes_and_unmutes_a_ticket(as_user, customer, product):
    ticket = make_ticket(customer, product)
    browser = as_user(customer)

    muted = browser.post(f"/notifications/tickets/{ticket.pk}/mute/", follow=True).content.decode()
    unmuted = browser.post(f"/notifications/tickets/{ticket.pk}/unmute/", follow=True).content.decode()

    assert "Unmute this ticket" in muted
    assert "Mute this ticket" in unmuted
    assert not MutedTicket.objects.exists()


@pytest.mark.parametrize("number", [0, 999_999, 10**30])
def test_a_ticket_that_is_not_there_cannot_be_muted(as_user, customer, number):
    assert as_user(customer).post(f"/notifications/tickets/{number}/mute/").status_code == 404


def test_who_is_not_concerned_cannot_mute(as_user, customer, outsider, agent, product):
    ticket = make_ticket(customer, product)

    answers = [
        as_user(each).post(f"/notifications/tickets/{ticket.pk}/mute/").status_code for each in (outsider, agent)
    ]

    assert answers == [404, 404]
    assert not MutedTicket.objects.exists()


def test_the_button_is_for_who_is_concerned(as_user, customer, agent, other_agent, product):
    ticket = make_ticket(customer, product, assignee=agent)

    pages = [as_user(each).get(f"/tickets/{ticket.pk}/").content.decode() for each in (customer, agent, other_agent)]

    assert ["Mute this ticket" in page for page in pages] == [True, True, False]


@pytest.mark.parametrize("path", ["", "tickets/1/mute/", "tickets/1/unmute/"])
def test_who_is_not_signed_in_is_asked_to(client, path):
    assert client.post(f"/notifications/{path}").status_code == 302


def test_a_look_changes_nothing(as_user, customer, product):
    ticket = make_ticket(customer, product)

    as_user(customer).get(f"/notifications/tickets/{ticket.pk}/mute/")

    assert not MutedTicket.objects.exists()

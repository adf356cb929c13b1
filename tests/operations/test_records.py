"""operations/records.py: pages that begin after a row, searches that have an index."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from notifications.models import Delivery, State
from notifications.notice import Channel
from operations import records
from stega.models import OutboxEntry
from tests.factories import make_user

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def entry(**fields):
    return OutboxEntry.objects.create(key=uuid.uuid4(), task="send_welcome_notification", args=[1], **fields)


def delivery(**fields):
    age = fields.pop("age", timedelta())
    fields = {"event_key": uuid.uuid4(), "channel": Channel.EMAIL, "recipient": "user:1", "state": "sent", **fields}
    row = Delivery.objects.create(**fields)
    Delivery.objects.filter(pk=row.pk).update(created_at=NOW - age)
    return row


def all_pages(ask):
    """Every row, page after page."""
    rows, place = [], ""
    while True:
        page = ask(place)
        rows += page.rows
        place = page.next
        if not place:
            return rows


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    monkeypatch.setattr(records, "PAGE_SIZE", 2)


@pytest.mark.parametrize(
    ("state", "fields"),
    [
        ("open", {}),
        ("all", {}),
        ("given_up", {"failed_at": NOW}),
        ("done", {"done_at": NOW}),
        ("done", {"done_at": NOW, "failed_at": NOW}),
    ],
)
def test_every_outbox_entry_of_a_state_is_on_one_page(state, fields):
    entries = {entry(**fields) for _number in range(5)}

    rows = all_pages(lambda place: records.outbox(state, "", place))

    assert len(rows) == 5
    assert set(rows) == entries


def test_an_entry_that_was_let_be_is_listed_as_given_up_no_more():
    entry(failed_at=NOW, done_at=NOW)

    assert records.outbox("given_up", "", "").rows == []


def test_an_outbox_entry_is_found_by_its_key():
    wanted, _other = entry(), entry()

    assert records.outbox("open", str(wanted.key), "").rows == [wanted]
    assert records.outbox("open", "no key", "").rows == []


@pytest.mark.parametrize("state", [State.PENDING, State.SENDING])
def test_what_is_still_to_be_told_comes_newest_first_whatever_its_channel(state):
    open_ = [
        delivery(state=state, channel=channel, age=timedelta(minutes=minutes))
        for minutes, channel in enumerate([Channel.EMAIL, Channel.SLACK, Channel.SLACK, Channel.SLACK, Channel.EMAIL])
    ]
    delivery(state=State.SENT)

    assert all_pages(lambda place: records.deliveries("", state, place)) == open_


def test_every_delivery_is_on_one_page_the_newest_first():
    rows = [delivery(age=timedelta(minutes=age)) for age in (3, 1, 1, 2, 1)]

    found = all_pages(lambda place: records.deliveries("", "", place))

    assert [row.pk for row in found] == [rows[index].pk for index in (4, 2, 1, 3, 0)]


@pytest.mark.parametrize(
    "query", ["{key}", "12", "#12", "user:{person}", "customer@example.com", "CUSTOMER@example.com"]
)
def test_a_delivery_is_found_by_key_ticket_recipient_and_address(query):
    person = make_user("customer")
    wanted = delivery(ticket_id=12, recipient=f"user:{person.pk}", address=person.email)
    delivery(ticket_id=13, recipient="user:0")

    found = records.deliveries(query.format(key=wanted.event_key, person=person.pk), "", "").rows

    assert [row.pk for row in found] == [wanted.pk]


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("query", ["", "12"])
def test_deliveries_of_one_state_are_found(state, query):
    rows = {each: delivery(state=each, ticket_id=12) for each in State}

    found = records.deliveries(query, state, "").rows

    assert [row.pk for row in found] == [rows[state].pk]


def test_recipients_have_the_names_of_people():
    person = make_user("customer", display_name="The customer")
    rows = [delivery(recipient=f"user:{person.pk}"), delivery(recipient="product:1", channel=Channel.SLACK)]

    assert records.names_of(rows) == {f"user:{person.pk}": "The customer"}

import uuid

import pytest
from django.template import Context, Template
from django.utils.translation import gettext, override

from accounts.models import Role, User
from notifications.models import Delivery, State
from notifications.notice import Channel

pytestmark = pytest.mark.django_db


def delivery(**values):
    defaults = {
        "event_key": uuid.uuid4(),
        "event_type": "ticket.sla_breached",
        "ticket_id": 12,
        "channel": Channel.EMAIL,
        "recipient": "user:0",
        "address": "agent@example.com",
        "state": State.SENT,
        "attempts": 1,
    }
    return Delivery.objects.create(**{**defaults, **values})


def ledger(ticket_id=12):
    return Template("{% load deliveries %}{% ticket_deliveries ticket_id %}").render(Context({"ticket_id": ticket_id}))


def test_a_ticket_nobody_was_told_about_says_so():
    assert "Nobody has been told" in ledger()


def test_the_ledger_names_who_was_told_and_by_which_channel():
    agent = User.objects.create(username="agent", email="agent@example.com", role=Role.AGENT.value, display_name="Ana")
    delivery(recipient=f"user:{agent.pk}")
    delivery(channel=Channel.SLACK, recipient="product:3", address="Printers")

    shown = ledger()

    assert "Ana" in shown
    assert "SLA breached" in shown
    assert "agent@example.com" in shown
    assert "Printers" in shown


def test_the_ledger_is_in_the_order_of_the_history_with_its_times():
    delivery(address="first@example.com")
    delivery(address="second@example.com")

    shown = ledger()

    assert shown.index("first@example.com") < shown.index("second@example.com")
    assert shown.count("just now</time>") == 2
    assert "(UTC)" in shown


def test_the_ledger_says_why_not_and_after_how_many_tries():
    delivery(state=State.FAILED, attempts=3, reason="The mail server refused", detail="550 <b>no</b>")

    shown = ledger()

    assert "attempt 3" in shown
    assert "The mail server refused: 550 &lt;b&gt;no&lt;/b&gt;" in shown


def test_the_ledger_shows_the_deliveries_of_this_ticket_only():
    delivery(ticket_id=13)

    assert "agent@example.com" not in ledger()


def test_the_ledger_asks_the_database_twice_however_many_were_told(django_assert_num_queries):
    for number in range(5):
        delivery(recipient=f"user:{number}")

    with django_assert_num_queries(2):
        ledger()


def test_the_ledger_speaks_the_language_of_its_reader():
    delivery(state=State.SKIPPED, reason="The user is inactive")

    with override("pt-br"):
        assert gettext("The user is inactive") in ledger()
        assert "The user is inactive" not in ledger()

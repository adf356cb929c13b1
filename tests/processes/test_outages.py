"""A mail server or Slack that fails costs nothing but time, and never the other channel."""

import time
from collections import Counter

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from notifications.models import Circuit, Delivery, State
from stega.pgque.publishing import event_key, publish
from tests.factories import make_product, make_ticket, make_user
from tests.support.event_log import dead_letters, tick
from tests.support.processes import free_port
from tests.support.waiting import wait_until

QUICK = {"CIRCUIT_PAUSE_SECONDS": 0.2, "CIRCUIT_LONGEST_PAUSE_SECONDS": 1, "SLACK_PACE_SECONDS": 0.01}
PEOPLE = 20
HOSTILE = (
    "<!channel> <https://evil.example|x> \r\nBcc: boss@example.com\x0b\u2028 {{ 7*7 }} %s <img src=x onerror=1> & 💎"
)


@pytest.fixture
def people(db):
    return [make_user(f"customer-{number}") for number in range(PEOPLE)]


def welcome(people):
    for person in people:
        payload = {"user_id": person.pk, "email": person.email, "display_name": person.display_name}
        publish("ticket.welcome", payload, event_key("ticket.welcome", person.pk))


def breach(ticket):
    payload = {
        "ticket_id": ticket.pk,
        "title": ticket.title,
        "priority": ticket.priority,
        "product_name": ticket.product.name,
        "elapsed_hours": 4,
    }
    publish("ticket.sla_breached", payload, event_key("ticket.sla_breached", ticket.pk))


def is_open():
    return Circuit.objects.filter(line__startswith="smtp", retry_at__isnull=False).exists()


@pytest.fixture(params=["421 at every recipient", "535 at the sign-in", "connection refused"])
def outage(request, mailbox):
    """The mail server's way to fail: what the workers need to know of it, and how to end it."""
    if request.param == "421 at every recipient":
        mailbox.rcpt = lambda address: "421 4.3.0 out of order"
        return {}, lambda: setattr(mailbox, "rcpt", lambda address: None)
    if request.param == "535 at the sign-in":
        mailbox.sign_in_works = False
        return {"EMAIL_HOST_USER": "stega", "EMAIL_HOST_PASSWORD": "x"}, lambda: setattr(mailbox, "sign_in_works", True)
    port = free_port()
    return {"EMAIL_PORT": port}, lambda: mailbox.listen_at(port)


def test_mail_waits_for_its_server_while_slack_goes_on_and_all_is_told_once_after(
    start, mailbox, slack, people, admin, outage
):
    settings, mend = outage
    ticket = make_ticket(people[0], make_product(slack_webhook_url=slack.url))
    start("pgque_ticker")
    start("notification_worker", **QUICK, **settings)
    start("sla_breach_worker", **QUICK, **settings)
    welcome(people)
    wait_until(is_open, timeout=30)

    breach(ticket)
    wait_until(lambda: slack.received, timeout=20)
    assert mailbox.received == []
    mend()

    everybody = [person.email for person in [*people, admin]]
    wait_until(lambda: Delivery.objects.filter(state=State.SENT).count() == len(everybody) + 1, timeout=90)
    assert Counter(mailbox.addresses()) == Counter(everybody)
    assert len(slack.received) == 1
    assert dead_letters(django_settings.PGQUE_QUEUE) == {}


@pytest.mark.parametrize("command", ["notification_worker", "sla_breach_worker"])
def test_a_worker_stops_in_time_while_the_mail_server_hangs_and_begins_no_further_recipient(
    start, mailbox, customer, command
):
    for number in range(5):
        make_user(f"admin-{number}", Role.ADMIN)
    mailbox.gate.clear()
    breach(make_ticket(customer, make_product()))
    stats = dict.fromkeys(
        ("open_count", "in_progress_count", "resolved_count", "created_last_7d", "resolved_last_7d"), 0
    ) | {"avg_resolution_hours": None}
    report = {"product_id": 1, "product_name": "Shop", "period": "7d", "stats": stats}
    publish("report.weekly_ready", report, event_key("report.weekly_ready", 1))
    tick(django_settings.PGQUE_QUEUE)
    worker = start(command, DELIVERY_LEASE_SECONDS=15, EMAIL_TIMEOUT=5)
    wait_until(lambda: mailbox.received, timeout=20)
    begin = time.monotonic()

    code = worker.terminate()

    assert code == 0, worker.output
    assert time.monotonic() - begin < 10
    assert len(mailbox.received) == 1


def test_hostile_text_arrives_as_text(start, mailbox, slack, customer, admin):
    User.objects.filter(pk=admin.pk).update(display_name=HOSTILE, first_signed_in_at=timezone.now())
    product = make_product(slack_webhook_url=slack.url)
    ticket = make_ticket(customer, product, title=HOSTILE)
    start("pgque_ticker")
    start("sla_breach_worker")

    breach(ticket)

    wait_until(lambda: mailbox.received and slack.received, timeout=30)
    mail = mailbox.received[0].message
    assert mailbox.addresses() == [admin.email]
    assert mail["Bcc"] is None
    assert [each.addr_spec for each in mail["To"].addresses] == [admin.email]
    assert len(mail["Subject"].splitlines()) == 1
    assert "<img" not in mail.get_body(("html",)).get_content()
    assert "<img src=x onerror=1>" in mail.get_body(("plain",)).get_content()
    assert "<!" not in slack.texts()[0].replace("&lt;!", "")
    assert "evil.example|" not in slack.texts()[0].replace("&lt;https://evil.example|", "")

"""What happens to a ticket reaches a person: the whole line, each part a process of its own."""

from django.utils import timezone
from django_q.models import OrmQ

from accounts.models import User
from accounts.roles import Role
from stega.models import OutboxEntry
from tests.factories import PASSWORD, make_product
from tests.support.browser import Browser
from tests.support.processes import run_task
from tests.support.waiting import wait_until
from tickets.models import Ticket


def start_the_line(start):
    start("qcluster", saying="ready for work")
    start("pgque_ticker")
    start("notification_worker")
    for _ in range(2):
        start("sla_breach_worker")


def open_a_ticket_that_breaches_its_sla(site, slack, customer):
    """The page that the customer gets; two scans look after the ticket when its time is over."""
    product = make_product(sla_critical_minutes=1, slack_webhook_url=slack.url)
    person = Browser(site)
    person.sign_in(customer.username, PASSWORD)
    opened = person.post("/tickets/new/", title="Não abre 💎", body="Nothing", product=product.pk, priority="critical")
    Ticket.objects.update(sla_due_at=timezone.now())
    for _ in range(2):
        run_task("tickets.tasks.check_sla_breaches")
    return opened


def test_the_first_sign_in_is_welcomed_once_and_the_second_not_at_all(start, site, mailbox, customer):
    start_the_line(start)

    for _ in range(2):
        assert Browser(site).sign_in(customer.username, PASSWORD).status == 200
        wait_until(lambda: mailbox.addresses(), timeout=20)

    run_task("stega.outbox.sweep")
    wait_until(_outbox_is_done, timeout=20)
    assert mailbox.addresses() == [customer.email]


def test_a_breached_sla_is_told_to_every_admin_by_mail_and_once_in_slack(start, site, mailbox, slack, customer, admin):
    other_admin = User.objects.create_user(
        "admin-2", "admin-2@example.com", PASSWORD, role=Role.ADMIN, first_signed_in_at=timezone.now()
    )
    User.objects.update(first_signed_in_at=timezone.now())
    start_the_line(start)

    opened = open_a_ticket_that_breaches_its_sla(site, slack, customer)

    assert opened.status == 200
    wait_until(lambda: len(mailbox.received) >= 2 and slack.received, timeout=30)
    wait_until(_outbox_is_done, timeout=20)
    assert sorted(mailbox.addresses()) == sorted([admin.email, other_admin.email])
    assert len(slack.received) == 1
    assert "Não abre 💎" in slack.texts()[0]


def _outbox_is_done():
    return not OutboxEntry.objects.open().exists() and not OrmQ.objects.exists()

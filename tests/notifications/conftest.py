"""Real receivers on loopback with the settings that send to them; people, and a ticket that concerns them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from accounts.models import Role, User
from notifications.channels import smtp
from stega.audience import TicketAudience
from tests.notifications import audience
from tests.support.mailbox import Mailbox
from tests.support.receivers import WebhookReceiver

TICKET_ID = 12
OPENED_AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def mailbox(settings):
    """A mail server that Stega sends to."""
    with Mailbox() as server:
        settings.EMAIL_BACKEND = "notifications.channels.smtp.EmailBackend"
        settings.EMAIL_HOST = server.host
        settings.EMAIL_PORT = server.port
        settings.EMAIL_TIMEOUT = 5
        settings.DEFAULT_FROM_EMAIL = "Stega <stega@help.example.com>"
        yield server
        smtp.hang_up()


@pytest.fixture
def webhook():
    """A Slack that takes posts."""
    with WebhookReceiver() as server:
        yield server


@pytest.fixture
def people():
    """author (a customer), assignee (an agent), admin and second admin, by their username."""
    roles = {"author": Role.CUSTOMER, "assignee": Role.AGENT, "admin": Role.ADMIN, "admin2": Role.ADMIN}
    return {
        name: User.objects.create(username=name, email=f"{name}@example.com", role=role.value)
        for name, role in roles.items()
    }


@pytest.fixture
def ticket(people, settings, monkeypatch):
    """Put the ticket into the audience; returns a function that changes it."""
    settings.AUDIENCE = "tests.notifications.audience"
    first = TicketAudience(
        ticket_id=TICKET_ID,
        title="Printer on fire",
        product_id=3,
        product_name="Printers",
        priority="critical",
        status="open",
        author_id=people["author"].pk,
        assignee_id=people["assignee"].pk,
        opened_at=OPENED_AT,
        sla_due_at=OPENED_AT + timedelta(minutes=1),
        sla_breached_at=OPENED_AT + timedelta(minutes=3),
        slack_webhook_url="",
    )
    monkeypatch.setattr(audience, "tickets", {TICKET_ID: first})
    monkeypatch.setattr(audience, "comments", {3: "Have you tried water?"})

    def change(**changes):
        audience.tickets[TICKET_ID] = replace(audience.tickets[TICKET_ID], **changes)

    return change

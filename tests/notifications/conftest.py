"""Real receivers on loopback, and the settings that send to them."""

import pytest

from notifications.channels import email
from tests.support.mailbox import Mailbox
from tests.support.receivers import WebhookReceiver


@pytest.fixture
def mailbox(settings):
    """A mail server that Stega sends to."""
    with Mailbox() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST = server.host
        settings.EMAIL_PORT = server.port
        settings.EMAIL_TIMEOUT = 5
        settings.DEFAULT_FROM_EMAIL = "Stega <stega@help.example.com>"
        yield server
        email.hang_up()


@pytest.fixture
def webhook():
    """A Slack that takes posts."""
    with WebhookReceiver() as server:
        yield server

"""A mail to send."""

import uuid

from notifications.channels import email
from notifications.messages import Wording

KEY = uuid.UUID("5f5fc7c0-0000-4000-8000-000000000001")


WORDING = Wording("[#12] Printer on fire", "It burns.\n", "<p>It burns.</p>")


def send(target="jane@example.com", name="Jane", wording=WORDING):
    email.send(target, name, wording, email.message_id(KEY, "user:5"))

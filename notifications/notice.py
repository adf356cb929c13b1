"""What one person is to be told, and by which channel."""

import uuid
from dataclasses import dataclass, field

from django.db import models
from django.utils.translation import gettext_lazy as _

from notifications.messages import Wording


class Channel(models.TextChoices):
    EMAIL = "email", _("e-mail")
    SLACK = "slack", "Slack"


@dataclass(frozen=True)
class Notice:
    """One thing to tell one recipient by one channel: what a row of the ledger stands for."""

    event_key: uuid.UUID
    event_type: str
    ticket_id: int | None
    channel: Channel
    recipient: str  # who it is, whatever the address: "user:5", "product:3"
    address: str  # what the ledger shows
    wording: Wording
    name: str = ""  # the display name beside a mail address
    target: str = field(default="", repr=False)  # where it goes; a secret for Slack
    skip: str = ""  # why this recipient is not told: a msgid

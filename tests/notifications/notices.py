"""Notices about one event, and what the ledger says of them."""

import uuid
from dataclasses import replace
from datetime import timedelta

from django.db.models import F

from notifications.messages import Wording
from notifications.models import Delivery
from notifications.notice import Channel, Notice

KEY = uuid.UUID("5f5fc7c0-0000-4000-8000-000000000001")
WORDING = Wording("SLA breached", "It burns.\n", "<p>It burns.</p>")


def mail_to(number, **changes):
    address = f"user{number}@example.com"
    notice = Notice(
        KEY, "ticket.sla_breached", 12, Channel.EMAIL, f"user:{number}", address, WORDING, name="user", target=address
    )
    return replace(notice, **changes)


def post_to(webhook):
    return Notice(KEY, "ticket.sla_breached", 12, Channel.SLACK, "product:3", "Printers", WORDING, target=webhook.url)


def row(recipient="user:1"):
    return Delivery.objects.get(recipient=recipient)


def claim():
    """Another process takes the notice for user 1."""
    held = Delivery.objects.claim(mail_to(1), "<1@example.com>", "smtp")
    assert held is not None
    return held


def age(**ages):
    """Move moments of every row into the past, as if that time had gone by."""
    Delivery.objects.update(**{name: F(name) - timedelta(seconds=seconds) for name, seconds in ages.items()})

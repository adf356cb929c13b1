"""Telling people: each notice once per event, channel and recipient, as far as the channel allows."""

import logging
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db import transaction
from django.utils.translation import gettext_noop

from notifications.channels import PermanentFailure, TemporaryFailure, email, slack
from notifications.messages import Wording
from notifications.models import Channel, Claim, Delivery
from stega.outages import is_outage
from stega.pgque.consumer import RetryLater

logger = logging.getLogger(__name__)


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


def deliver(notices: Iterable[Notice]) -> None:
    """Tell every recipient, each whatever becomes of the others; raise RetryLater when one must be told later.

    1. The notice is claimed in the ledger, in a transaction that commits before any socket is touched. A claim is a
       lease on the database's clock, twice as long as any channel may take; nobody else sends meanwhile.
    2. The channel sends, with no transaction open.
    3. What came of it is written: sent, failed for good, or to be tried again.

    Whoever dies between 1 and 3 leaves a lease, after which the notice is sent again: a crash doubles at most the one
    in flight, and a mail sent again has the same Message-ID. A fault of our own leaves its notice open and is raised
    when the others were told; a lost database is raised at once.
    """
    left: list[RetryLater] = []
    faults: list[Exception] = []
    for notice in notices:
        try:
            _deliver(notice)
        except RetryLater as later:
            left.append(later)
        except Exception as fault:
            if is_outage(fault):
                raise
            faults.append(fault)
    if faults:
        raise faults[0]
    if left:
        raise min(left, key=lambda later: later.seconds or 0.0)


def _deliver(notice: Notice) -> None:
    if notice.skip:
        Delivery.objects.skip(notice)
        return
    message_id = email.message_id(notice.event_key, notice.recipient) if notice.channel == Channel.EMAIL else ""
    with transaction.atomic(durable=True):
        claim = Delivery.objects.claim(notice, message_id)
    if claim is None:
        _leave_to_others(notice)
    else:
        _send(notice, message_id, claim)


def _leave_to_others(notice: Notice) -> None:
    """Nothing to do for a notice that is done; RetryLater for one that is being sent, or not due yet."""
    seconds = Delivery.objects.seconds_until_free(notice)
    if seconds is not None:
        raise RetryLater(f"{notice.channel} to {notice.recipient} is in flight or not due", seconds=seconds)


def _send(notice: Notice, message_id: str, claim: Claim) -> None:
    try:
        if notice.channel == Channel.EMAIL:
            email.send(notice.target, notice.name, notice.wording, message_id)
        else:
            slack.send(notice.target, notice.wording)
    except PermanentFailure as failure:
        logger.warning("%s to %s failed for good: %s", notice.channel, notice.recipient, failure)
        Delivery.objects.settle_failed(claim, failure.reason, failure.detail)
    except TemporaryFailure as failure:
        Delivery.objects.settle_pending(claim, failure.reason, failure.detail, failure.seconds)
        raise RetryLater(f"{notice.channel} to {notice.recipient}: {failure}", seconds=failure.seconds) from failure
    except Exception as fault:
        Delivery.objects.settle_pending(claim, gettext_noop("An error of Stega itself"), type(fault).__name__, None)
        raise
    else:
        Delivery.objects.settle_sent(claim)

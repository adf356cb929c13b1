"""The delivery ledger: who is told what, by which channel, and what came of it."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from notifications.circuits import Admission, LineState
from notifications.models.circuit import STATE, state_of
from notifications.notice import Channel, Notice
from notifications.text import DETAIL_LIMIT, single_line
from stega.database import plans


class State(models.TextChoices):
    PENDING = "pending", _("to be tried again")
    SENDING = "sending", _("being sent")
    SENT = "sent", _("sent")
    FAILED = "failed", _("failed")
    GIVEN_UP = "given_up", _("given up")
    SKIPPED = "skipped", _("not told")


@dataclass(frozen=True)
class Claim:
    """The right to send one notice: of this attempt, until the lease is over.

    Known by what it is about and by its moment, never by the row's id: a crash of the server may take the row back,
    and then gives its id to another.
    """

    notice: Notice
    message_id: str
    attempt: int
    claimed_at: datetime.datetime
    created_at: datetime.datetime
    slot_at: datetime.datetime | None
    uncertain_tries: int
    abandoned: int
    """How many senders in a row let go of the notice without a word, as those do that die."""
    line: LineState
    """Of the line that it is to go out by, as it was at the claim."""

    @property
    def is_old(self) -> bool:
        """Whether the notice has waited for DELIVERY_MAX_AGE_SECONDS: this attempt is its last."""
        return self.claimed_at - self.created_at >= datetime.timedelta(seconds=settings.DELIVERY_MAX_AGE_SECONDS)

    @property
    def has_slot(self) -> bool:
        """Whether its turn on a paced line, reserved before, is now."""
        return self.slot_at is not None and self.slot_at > self.claimed_at - _lease()


@dataclass(frozen=True)
class Held:
    """A notice that is not free: given up, until an operator replays its event, or busy for so many seconds."""

    is_given_up: bool
    reason: str
    seconds: float


_BEGUN = {
    "event_key": "uuid",
    "event_type": "text",
    "ticket_id": "bigint",
    "channel": "text",
    "recipient": "text",
    "address": "text",
    "state": "text",
    "attempts": "int",
    "reason": "text",
    "message_id": "text",
}
"""The columns of a row that is begun, and their types."""


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def open(self) -> DeliveryQuerySet:
        """Still to be told."""
        return self.filter(state__in=[State.PENDING, State.SENDING])

    def closed(self) -> DeliveryQuerySet:
        return self.exclude(state__in=[State.PENDING, State.SENDING])

    def claim(self, notice: Notice, message_id: str, line: str, beside: Iterable[Notice] = ()) -> Claim | None:
        """Take the notice for sending over `line`; None when it is done, not due or in another's hands.

        A claim whose lease is over belongs to a sender that died: it may be taken again. `beside` are notices about the
        same event to be skipped. The commit does not wait for the disk: a crash of the server may take the rows back
        while the claim is held. Whoever holds it then writes its end all the same, what is merely to be tried again is
        claimed as new, and the commit of an end brings what was skipped to the disk.
        """
        claimed = _row(notice) | {"state": State.SENDING, "attempts": 1, "message_id": message_id}
        answers = self._upsert([*map(_row, beside), claimed], line=line, commit="off")
        for state, attempt, claimed_at, created_at, slot_at, tries, abandoned, circuit in answers:
            if state == State.SENDING:
                moments = (claimed_at, created_at, slot_at)
                return Claim(notice, message_id, attempt, *moments, tries, abandoned, state_of(circuit))
        return None

    def skip(self, notices: Iterable[Notice]) -> None:
        """Record of each why nobody is told, unless somebody was or is about to be."""
        self._upsert([_row(notice) for notice in notices], line="", commit="on")

    def _upsert(self, rows: list[dict[str, Any]], *, line: str, commit: str) -> list[Any]:
        """Begin or skip, all in one statement; of those that were free: state, attempts, moments, the line's circuit.

        Raw SQL, since only `on conflict ... where` makes the first claim and the later ones the same race, on the
        database's clock. In the order of their keys: two that take the same rows never wait for each other.
        """
        by_key = {(row["channel"], row["recipient"]): row for row in rows}
        ordered = [by_key[key] for key in sorted(by_key)]
        statement = f"""
            insert into notifications_delivery as d ({", ".join(_BEGUN)}, detail, created_at, claimed_at)
            select n.*, '', statement_timestamp(), statement_timestamp()
            from set_config('synchronous_commit', %(commit)s, true), (values {_places(len(ordered))}) as n
            on conflict (event_key, channel, recipient) do update
            set state = excluded.state, attempts = d.attempts + excluded.attempts, address = excluded.address,
                reason = excluded.reason, detail = '', message_id = excluded.message_id,
                claimed_at = excluded.claimed_at, abandoned = d.abandoned + (d.state = 'sending')::int
            where (d.state = 'pending'
                   and (excluded.state = 'skipped' or coalesce(d.retry_at, '-infinity') <= statement_timestamp()))
               or (d.state = 'sending' and d.claimed_at <= statement_timestamp() - %(lease)s)
            returning state, attempts, claimed_at, created_at, slot_at, uncertain_tries, abandoned, {STATE}
        """
        values = {f"{name}_{at}": value for at, row in enumerate(ordered) for name, value in row.items()}
        with plans.cursor(self.db) as cursor:
            cursor.execute(statement, values | {"commit": commit, "lease": _lease(), "line": line})
            return list(cursor.fetchall())

    def held(self, notice: Notice) -> Held | None:
        """Why a notice cannot be claimed; None when it is done (sent, failed, or skipped)."""
        statement = """
            select state = 'given_up', reason, extract(epoch from case state
                when 'pending' then coalesce(retry_at, statement_timestamp())
                when 'sending' then claimed_at + %(lease)s
            end - statement_timestamp())::float8
            from notifications_delivery
            where event_key = %(event_key)s and channel = %(channel)s and recipient = %(recipient)s
                and state in ('pending', 'sending', 'given_up')
        """
        with plans.cursor(self.db) as cursor:
            cursor.execute(statement, _identity(notice) | {"lease": _lease()})
            row = cursor.fetchone()
        return None if row is None else Held(row[0], row[1], max(0.0, row[2] or 0.0))

    def reopen(self, event_keys: Iterable[uuid.UUID]) -> int:
        """Let those be told after all who were given up: their time and their tries begin anew. How many."""
        given_up = self.filter(event_key__in=list(event_keys), state=State.GIVEN_UP)
        anew = {"created_at": Now(), "uncertain_tries": 0, "abandoned": 0, "retry_at": None, "slot_at": None}
        return given_up.update(state=State.PENDING, **anew)

    def settle_sent(self, claim: Claim) -> None:
        """Write that it went out. True whoever holds the claim by now, so it overrides every other state."""
        self._settle(claim, State.SENT)

    def settle_failed(self, claim: Claim, reason: str, detail: str) -> None:
        """Write that this recipient will not be told, unless the claim has passed to another sender."""
        self._settle(claim, State.FAILED, reason, detail)

    def settle_pending(
        self, claim: Claim, reason: str, detail: str, seconds: float | None, *, is_uncertain: bool = False
    ) -> None:
        """Give the claim back, to be taken again after `seconds`, unless it has passed to another sender."""
        retry_at = None if seconds is None else Now() + models.Value(datetime.timedelta(seconds=seconds))
        self._held(claim).update(
            state=State.PENDING,
            reason=reason,
            detail=single_line(detail, DETAIL_LIMIT),
            retry_at=retry_at,
            slot_at=None,
            uncertain_tries=models.F("uncertain_tries") + int(is_uncertain),
            abandoned=0,
        )

    def postpone(self, claim: Claim, reason: str, admission: Admission) -> None:
        """Give the claim back unused, as if it had never been: what was not tried costs no attempt."""
        until = Now() + models.Value(datetime.timedelta(seconds=admission.seconds))
        self._held(claim).update(
            state=State.PENDING,
            attempts=models.F("attempts") - 1,
            reason=reason,
            retry_at=until,
            slot_at=until if admission.is_slot else None,
        )

    def settle_given_up(self, claim: Claim, reason: str, detail: str) -> None:
        """Write that the recipient was not told and nobody tries again, unless an operator has the row reopened."""
        self._settle(claim, State.GIVEN_UP, reason, detail)

    def give_up(self, reason: str, detail: str = "") -> int:
        return self.update(
            state=State.GIVEN_UP, reason=reason, detail=single_line(detail, DETAIL_LIMIT), retry_at=None, slot_at=None
        )

    def _settle(self, claim: Claim, state: State, reason: str = "", detail: str = "") -> None:
        """Write the end of a claim, also when a crash of the server took its row back, or the row to an earlier state.

        Such a row is open with fewer attempts and an earlier moment than the claim's; who has claimed it since gave it
        a later moment. Raw, since every mail comes by and the ORM takes longer than the database.
        """
        statement = """
            insert into notifications_delivery as d
                (event_key, event_type, ticket_id, channel, recipient, address,
                 state, attempts, reason, detail, message_id, created_at, claimed_at, sent_at)
            values (%(event_key)s, %(event_type)s, %(ticket_id)s, %(channel)s, %(recipient)s, %(address)s,
                 %(state)s, %(attempts)s, %(reason)s, %(detail)s, %(message_id)s, %(claimed_at)s, %(claimed_at)s,
                 case when %(is_sent)s then statement_timestamp() end)
            on conflict (event_key, channel, recipient) do update
            set state = excluded.state, sent_at = excluded.sent_at, reason = excluded.reason,
                detail = excluded.detail, retry_at = null, slot_at = null,
                attempts = greatest(d.attempts, excluded.attempts),
                claimed_at = greatest(d.claimed_at, excluded.claimed_at)
            where (excluded.state = 'sent' and d.state <> 'sent')
               or (d.state = 'sending' and d.attempts = excluded.attempts and d.claimed_at = excluded.claimed_at)
               or (d.state in ('pending', 'sending')
                   and d.attempts < excluded.attempts and d.claimed_at < excluded.claimed_at)
        """
        values = _identity(claim.notice) | {
            "state": state,
            "is_sent": state == State.SENT,
            "attempts": claim.attempt,
            "reason": reason,
            "detail": single_line(detail, DETAIL_LIMIT),
            "message_id": claim.message_id,
            "claimed_at": claim.claimed_at,
        }
        with plans.cursor(self.db) as cursor:
            cursor.execute(statement, values)

    def _held(self, claim: Claim) -> DeliveryQuerySet:
        notice = claim.notice
        return self.filter(
            event_key=notice.event_key,
            channel=notice.channel,
            recipient=notice.recipient,
            state=State.SENDING,
            attempts=claim.attempt,
            claimed_at=claim.claimed_at,
        )


def _lease() -> datetime.timedelta:
    return datetime.timedelta(seconds=settings.DELIVERY_LEASE_SECONDS)


def _identity(notice: Notice) -> dict[str, Any]:
    """The columns of a row that say what is told to whom."""
    return {
        "event_key": notice.event_key,
        "event_type": notice.event_type,
        "ticket_id": notice.ticket_id,
        "channel": notice.channel,
        "recipient": notice.recipient,
        "address": single_line(notice.address, Delivery._meta.get_field("address").max_length or 0),
    }


def _row(notice: Notice) -> dict[str, Any]:
    """The columns of a row that is begun: of a skipped notice, unless they are overridden."""
    return _identity(notice) | {"reason": notice.skip, "state": State.SKIPPED, "attempts": 0, "message_id": ""}


@cache
def _places(rows: int) -> str:
    """The places of so many rows' values in a statement."""
    return ", ".join(
        "(" + ", ".join(f"%({name}_{row})s::{kind}" for name, kind in _BEGUN.items()) + ")" for row in range(rows)
    )


class Delivery(models.Model):
    """One notice to one recipient by one channel about one event: there is never a second row for the same."""

    event_key = models.UUIDField(_("event key"), default=uuid.uuid4)
    event_type = models.CharField(_("event type"), max_length=100)
    # Not a foreign key: this app learns about tickets from events alone, and the record outlives the ticket.
    ticket_id = models.BigIntegerField(_("ticket"), null=True, blank=True)
    channel = models.CharField(_("channel"), max_length=10, choices=Channel.choices)
    recipient = models.CharField(_("recipient"), max_length=100, help_text=_("Who it is, such as user:5."))
    address = models.CharField(
        _("address"), max_length=320, blank=True, help_text=_("A mail address; for Slack the product.")
    )
    state = models.CharField(_("state"), max_length=10, choices=State.choices)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    uncertain_tries = models.PositiveSmallIntegerField(
        _("uncertain tries"), db_default=0, help_text=_("How often nobody said whether it arrived.")
    )
    abandoned = models.PositiveSmallIntegerField(
        _("abandoned"), db_default=0, help_text=_("How many senders in a row died with it in hand.")
    )
    # A msgid, so that each reader gets it in their language; the detail is the other side's own words.
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    detail = models.CharField(_("detail"), max_length=DETAIL_LIMIT, blank=True)
    message_id = models.CharField(_("Message-ID"), max_length=320, blank=True)
    created_at = models.DateTimeField(_("created at"), db_default=Now())
    claimed_at = models.DateTimeField(_("last tried at"), null=True, blank=True)
    retry_at = models.DateTimeField(_("not before"), null=True, blank=True)
    slot_at = models.DateTimeField(_("its turn"), null=True, blank=True)
    sent_at = models.DateTimeField(_("sent at"), null=True, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        constraints = [
            # DeliveryQuerySet.claim(): the promise of one delivery per event, channel and recipient
            models.UniqueConstraint(fields=["event_key", "channel", "recipient"], name="delivery_once"),
            models.CheckConstraint(condition=models.Q(channel__in=Channel.values), name="delivery_channel"),
            models.CheckConstraint(condition=models.Q(state__in=State.values), name="delivery_state"),
        ]
        indexes = [
            # the ledger on the ticket page
            models.Index(fields=["ticket_id", "created_at"], name="delivery_ticket"),
            # the admin's list, newest first
            models.Index(fields=["-created_at"], name="delivery_newest"),
            # the console's search for a person or a product
            models.Index(fields=["recipient", "-created_at"], name="delivery_recipient"),
            # the console's list of what was not told, newest first
            models.Index(
                fields=["-created_at"],
                name="delivery_failed",
                condition=models.Q(state__in=["failed", "given_up"]),
            ),
            # what waits, by channel, for operations.facts.ledger; what prune_ledger closes
            models.Index(
                fields=["channel", "created_at"],
                name="delivery_open",
                condition=models.Q(state__in=["pending", "sending"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.channel} {self.recipient}"

    @property
    def last_moment(self) -> datetime.datetime:
        """When it went out; else when that was last tried."""
        return self.sent_at or self.claimed_at or self.created_at

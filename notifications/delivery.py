"""Telling people: each notice once per event, channel and recipient, as far as the channel allows."""

import logging
import random
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections, transaction
from django.utils.translation import gettext_noop

from notifications.channels import (
    Deferred,
    PermanentFailure,
    TemporaryFailure,
    Uncertain,
    Unsendable,
    Untried,
    email,
    slack,
)
from notifications.circuits import Admission
from notifications.models import Circuit, Claim, Delivery
from notifications.notice import Channel, Notice
from stega.database.outages import is_outage
from stega.pgque.message import MOST_DEATHS, Rejected, RetryLater, retry_delay
from stega.wording.text import trace

logger = logging.getLogger(__name__)

WAITS = gettext_noop("Waits until the channel works again")
PACED = gettext_noop("Waits for its turn: Slack takes one post at a time")
OWN_FAULT = gettext_noop("An error of Stega itself")

ABANDONED = gettext_noop("Whoever was sending it died, each time")

UNCERTAIN_TRIES = 8
"""How often a notice is sent at most while nobody says whether it arrives: over two hours, by default."""
LONGEST_PAUSE_SECONDS = 3600.0

_sent: deque[Claim] = deque()
"""What went out and is not written down yet. Threads that were left behind add to it."""


def deliver(notices: Iterable[Notice], *, is_last: bool = False, stopping: Callable[[], bool] = lambda: False) -> None:
    """Tell every recipient, each whatever becomes of the others; raise RetryLater when one must be told later.

    1. The notice is claimed in the ledger, in a transaction that commits before any socket is touched. A claim is a
       lease on the database's clock, twice as long as any channel may take; nobody else sends meanwhile.
    2. While the line's circuit is open, as the claim found it, or its pace is ahead, the claim is given back unused.
    3. The channel sends, with no transaction open.
    4. What came of it is written: sent, failed for good, or to be tried again.

    Whoever dies between 1 and 4 leaves a lease, after which the notice is sent again: a crash doubles at most the one
    in flight, and a mail sent again has the same Message-ID. One that MOST_DEATHS senders in a row died with is given
    up, for it may be what kills them. Who loses the database there writes down what went out before anything else.
    What may have arrived is sent again after pauses that grow, UNCERTAIN_TRIES times in all. Who is put off by a server
    that works waits alone, each time for longer, up to an hour. A fault of our own leaves its notice open (given up
    when this `is_last`) and is raised when the others were told and none of them waits; a lost database is raised at
    once. Waiting for a line never counts towards dead letters, nor towards the pause before the next try; it ends after
    DELIVERY_MAX_AGE_SECONDS with Rejected. Once `stopping` says so, no further recipient is begun.
    """
    with transaction.atomic(durable=True):
        pass  # Refuses to be inside a transaction of the caller's, whose claims nobody would see; costs no query.
    write_down_sent()
    outcomes: list[Exception] = []
    told, skipped = _parted(notices)
    if skipped and not told:
        Delivery.objects.skip(skipped)
    for notice in told:
        if stopping():
            outcomes.append(RetryLater("stopped before everybody was told", seconds=0.0, counted=False))
            break
        try:
            _deliver(notice, skipped, is_last=is_last)
            skipped = []
        except Exception as outcome:
            if is_outage(outcome):
                raise
            outcomes.append(outcome)
    if outcomes:
        raise _to_raise(outcomes)


def write_down_sent() -> None:
    """Settle what went out; what a lost database does not take stays for the next call, and its error is raised.

    To be called soon after an outage: who gets the notice meanwhile cannot know, and sends it again (same Message-ID).
    """
    with suppress(IndexError):
        while True:
            claim = _sent.popleft()
            try:
                Delivery.objects.settle_sent(claim)
            except (DatabaseError, InterfaceError):
                _sent.appendleft(claim)
                raise


def _write_down_late(claim: Claim) -> None:
    """The same from a thread that was left behind, at once: the notice may soon be another process's."""
    try:
        Delivery.objects.settle_sent(claim)
    except (DatabaseError, InterfaceError):
        _sent.append(claim)
    finally:
        connections.close_all()


def uncertain_pause(tries: int) -> float:
    """Seconds before a notice is sent again whose last so many tries left it uncertain whether it arrived."""
    return min(LONGEST_PAUSE_SECONDS, settings.UNCERTAIN_PAUSE_SECONDS * 2.0 ** (tries - 1))


def _to_raise(outcomes: list[Exception]) -> Exception:
    """Of several: the earliest return, for it counts no delivery; a fault of our own; a dead letter when all are over.

    A fault that is not raised is told here: it comes again with the one that waits.
    """
    waits = [outcome for outcome in outcomes if isinstance(outcome, RetryLater)]
    faults = [outcome for outcome in outcomes if not isinstance(outcome, RetryLater | Rejected)]
    if not waits:
        return (faults or outcomes)[0]
    for fault in faults:
        logger.error("%s beside others who are still to be told\n%s", OWN_FAULT, trace(fault))
    return min(waits, key=lambda wait: wait.seconds or 0.0)


def _parted(notices: Iterable[Notice]) -> tuple[list[Notice], list[Notice]]:
    """Those to tell, and those to skip."""
    told: list[Notice] = []
    skipped: list[Notice] = []
    for notice in notices:
        (skipped if notice.skip else told).append(notice)
        if notice.skip:
            logger.info("Does not tell %s by %s: %s", notice.recipient, notice.channel, notice.skip)
    return told, skipped


def _deliver(notice: Notice, skipped: list[Notice], *, is_last: bool) -> None:
    is_mail = notice.channel == Channel.EMAIL
    message_id = email.message_id(notice.event_key, notice.recipient) if is_mail else ""
    line = email.line() if is_mail else slack.line(notice.target)
    claim = Delivery.objects.claim(notice, message_id, line, skipped)
    if claim is None:
        _leave_to_others(notice)
    else:
        _Attempt(notice, claim, line, is_last).make()


def _leave_to_others(notice: Notice) -> None:
    """Nothing to do for a notice that is done; RetryLater for one that is being sent or not due, Rejected if given up.

    Each time anew: its process may have died before the event was a dead letter, or others were still to be told.
    """
    held = Delivery.objects.held(notice)
    if held is None:
        return
    if held.is_given_up:
        raise Rejected(f"{notice.channel} to {notice.recipient} given up: {held.reason}")
    raise RetryLater(f"{notice.channel} to {notice.recipient} is in flight or not due", held.seconds, counted=False)


@dataclass(frozen=True)
class _Attempt:
    """One claimed notice on its way: through the circuit of its line, out, and what came of it into the ledger."""

    notice: Notice
    claim: Claim
    line: str
    is_last: bool

    def make(self) -> None:
        if self.claim.abandoned >= MOST_DEATHS:
            self._give_up(TemporaryFailure(ABANDONED))
        pace = settings.SLACK_PACE_SECONDS if self.notice.channel == Channel.SLACK else 0.0
        admission = Circuit.objects.admit(self.line, self.claim.line, pace=pace, has_slot=self.claim.has_slot)
        if admission.seconds:
            self._wait(admission)
        else:
            self._send(admission)

    def _wait(self, admission: Admission) -> None:
        if self.claim.is_old and not admission.is_slot:
            self._give_up(TemporaryFailure(WAITS))
        Delivery.objects.postpone(self.claim, PACED if admission.is_slot else WAITS, admission)
        raise RetryLater(f"{self} waits", seconds=admission.seconds, counted=False)

    def _send(self, admission: Admission) -> None:
        try:
            if self.notice.channel == Channel.EMAIL:
                email.send(self.notice.target, self.notice.name, self.notice.wording, self.claim.message_id)
            else:
                slack.send(self.notice.target, self.notice.wording, late=partial(_write_down_late, self.claim))
        except PermanentFailure as failure:
            logger.warning("%s failed for good: %s", self, failure)
            Delivery.objects.settle_failed(self.claim, failure.reason, failure.detail)
            if not isinstance(failure, Unsendable):
                Circuit.objects.record_success(self.line, admission)
        except Untried as failure:
            self._wait(Admission(failure.seconds or 0.0))
        except TemporaryFailure as failure:
            self._fail_for_now(failure, self._pause(failure, admission))
        except Exception as fault:
            self._fail_by_own_fault(fault)
            raise
        else:
            _sent.append(self.claim)
            write_down_sent()
            Circuit.objects.record_success(self.line, admission)
            logger.info("Told %s %s", self, self.claim.message_id)

    def _pause(self, failure: TemporaryFailure, admission: Admission) -> float:
        """How long the notice waits by what the failure tells of its line, or else of this notice alone; 0 if open."""
        if not isinstance(failure, Deferred):
            return Circuit.objects.record_failure(self.line, admission, failure)
        Circuit.objects.record_success(self.line, admission)
        return retry_delay(self.claim.attempt - 1, random.random()).total_seconds()

    def _fail_for_now(self, failure: TemporaryFailure, pause: float) -> None:
        is_uncertain = isinstance(failure, Uncertain)
        tries = self.claim.uncertain_tries + is_uncertain
        if self.claim.is_old or (is_uncertain and tries >= UNCERTAIN_TRIES):
            self._give_up(failure)
        if is_uncertain:
            pause = max(pause, uncertain_pause(tries))
        Delivery.objects.settle_pending(
            self.claim, failure.reason, failure.detail, pause or None, is_uncertain=is_uncertain
        )
        seconds = pause or retry_delay(self.claim.attempt - 1, random.random()).total_seconds()
        raise RetryLater(f"{self}: {failure}", seconds=seconds, counted=False) from failure

    def _fail_by_own_fault(self, fault: Exception) -> None:
        if self.is_last:
            Delivery.objects.settle_given_up(self.claim, OWN_FAULT, type(fault).__name__)
        else:
            Delivery.objects.settle_pending(self.claim, OWN_FAULT, type(fault).__name__, None)

    def _give_up(self, failure: TemporaryFailure) -> None:
        Delivery.objects.settle_given_up(self.claim, failure.reason, failure.detail)
        raise Rejected(f"{self} given up: {failure}")

    def __str__(self) -> str:
        return f"{self.notice.channel} to {self.notice.recipient}"

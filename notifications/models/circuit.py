"""The circuits: which line out of Stega is in use, and which is left in peace."""

from __future__ import annotations

import datetime
import logging

from django.conf import settings
from django.db import connections, models
from django.db.models.functions import Greatest, Now
from django.utils.translation import gettext_lazy as _

from notifications import circuits
from notifications.channels import TemporaryFailure
from notifications.circuits import Admission, LineState
from notifications.text import DETAIL_LIMIT, single_line

logger = logging.getLogger(__name__)


STATE = """
    (select array[failures, extract(epoch from retry_at - statement_timestamp())]::float8[]
     from notifications_circuit where line = %(line)s)
"""
"""What a statement about something else asks on its way, for `state_of`: every mail would take one of its own."""


def state_of(answer: list[float | None] | None) -> LineState:
    """What a statement answered to STATE; of a line that nobody has used yet it knows nothing."""
    failures, seconds = answer or (0, None)
    return LineState(int(failures or 0), seconds)


class CircuitQuerySet(models.QuerySet["Circuit"]):
    """Every moment here is of the database's clock, which all processes share."""

    def admit(self, line: str, state: LineState, *, pace: float = 0.0, has_slot: bool = False) -> Admission:
        """Say whether the line, in this state just now, may be used; one caller may probe a broken one, for a lease.

        With a `pace`, an early caller reserves the next free slot, and comes back with `has_slot` when it is due.
        """
        if state.seconds is not None:
            if state.seconds > 0 or not self._begin_probe(line):
                return Admission(max(state.seconds, 1.0))
            return Admission(is_probe=True)
        if pace and not has_slot:
            return Admission(self._reserve(line, pace), is_slot=True, failures=state.failures)
        return Admission(failures=state.failures)

    def _begin_probe(self, line: str) -> bool:
        lease = datetime.timedelta(seconds=settings.DELIVERY_LEASE_SECONDS)
        return bool(self.filter(line=line, retry_at__lte=Now()).update(retry_at=Now() + models.Value(lease)))

    def _reserve(self, line: str, pace: float) -> float:
        """Take the next free slot of the line; the seconds until then. Raw, since only one statement is no race."""
        statement = """
            insert into notifications_circuit as c (line, failures, reason, detail, next_slot_at)
            values (%(line)s, 0, '', '', statement_timestamp() + make_interval(secs => %(pace)s))
            on conflict (line) do update
            set next_slot_at = greatest(c.next_slot_at, statement_timestamp()) + make_interval(secs => %(pace)s)
            returning extract(epoch from next_slot_at - statement_timestamp()) - %(pace)s
        """
        with connections[self.db].cursor() as cursor:
            cursor.execute(statement, {"line": line, "pace": pace})
            return max(0.0, float(cursor.fetchone()[0]))

    def record_success(self, line: str, admission: Admission) -> None:
        """The line answered: close its circuit."""
        if admission.is_probe or admission.failures:
            self.filter(line=line).update(failures=0, retry_at=None, reason="", detail="")
        if admission.is_probe:
            logger.info("%s works again", line)

    def record_failure(self, line: str, admission: Admission, failure: TemporaryFailure) -> float:
        """Count one more failure in a row, and open the circuit for the returned seconds when they are not 0.

        An older failure that is told late never shortens the pause of a later one; only a probe sets it anew.
        """
        statement = """
            insert into notifications_circuit as c (line, failures, reason, detail) values (%s, 1, %s, %s)
            on conflict (line) do update
            set failures = c.failures + 1, reason = excluded.reason, detail = excluded.detail
            returning failures
        """
        with connections[self.db].cursor() as cursor:
            cursor.execute(statement, [line, failure.reason, single_line(failure.detail, DETAIL_LIMIT)])
            failures = int(cursor.fetchone()[0])
        pause = circuits.pause(failures, failure.seconds)
        if pause:
            until = Now() + models.Value(datetime.timedelta(seconds=pause))
            retry_at = until if admission.is_probe else Greatest("retry_at", until)
            self.filter(line=line).update(retry_at=retry_at, next_slot_at=until)
            logger.warning("%s is left in peace for %g s after %d failures: %s", line, pause, failures, failure)
        elif admission.is_probe:
            self.filter(line=line).update(retry_at=None)
        return pause


class Circuit(models.Model):
    """One line out of Stega, a mail server or a Slack webhook, as all processes see it.

    Without `retry_at` the line is in use. With it nothing is sent before that moment, then one probe at a time.
    """

    line = models.CharField(_("line"), max_length=300, unique=True)
    failures = models.PositiveIntegerField(_("failures in a row"), default=0)
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    detail = models.CharField(_("detail"), max_length=DETAIL_LIMIT, blank=True)
    retry_at = models.DateTimeField(_("not before"), null=True, blank=True)
    next_slot_at = models.DateTimeField(_("next free slot"), null=True, blank=True)

    objects = CircuitQuerySet.as_manager()

    class Meta:
        verbose_name = _("circuit")
        verbose_name_plural = _("circuits")

    def __str__(self) -> str:
        return self.line

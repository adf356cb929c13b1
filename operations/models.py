"""What operators did, and the samples that the charts are drawn from."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db import connections, models, transaction
from django.db.models import Exists, Func, OuterRef, Q
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_noop, npgettext
from django.utils.translation import gettext_lazy as _

from operations import reasons
from stega.models import OutboxEntry, OutboxQuerySet
from stega.wording.fields import Text

TASK = "perform_operator_action"
COUNT_LIMIT = 5_000
"""Where the count of a confirmation ends: an action on a million rows must not make a person wait for the number."""
REASON_LENGTH = 500

_PROMISES = uuid.UUID("1c0d5a52-9f0b-4a39-8a6e-5d8b1f6f3b77")
"""Begins the keys of outbox entries of actions. An action's own key is made of one that a browser sent: no key of an
event to come may find its place in the outbox taken.
"""


class Kind(models.TextChoices):
    """What an operator can do. Each is counted, confirmed, given a reason, and done by a task."""

    REPLAY_LETTER = "replay_letter", _("replay a dead letter")
    REPLAY_GROUP = "replay_group", _("replay a group of dead letters")
    PURGE_LETTER = "purge_letter", _("delete a dead letter")
    PURGE_GROUP = "purge_group", _("delete a group of dead letters")
    RETRY_ENTRY = "retry_entry", _("try an outbox entry again")
    RETRY_ENTRIES = "retry_entries", _("try all given-up outbox entries again")
    SETTLE_ENTRY = "settle_entry", _("let a given-up outbox entry be")
    SETTLE_ENTRIES = "settle_entries", _("let all given-up outbox entries be")
    RUN_SCHEDULE = "run_schedule", _("run a schedule now")


HANDS_OVER = frozenset((Kind.REPLAY_LETTER, Kind.REPLAY_GROUP, Kind.RETRY_ENTRY, Kind.RETRY_ENTRIES, Kind.RUN_SCHEDULE))
"""Kinds after which a consumer, the sweep or a cluster has the work still before it."""

FAILED_AGAIN = gettext_noop("The first one failed again, so the others were left alone")
WAITS_AGAIN = gettext_noop("The first one failed again and waits for its next try, so the others were left alone")
NOT_TAKEN = gettext_noop("The consumer did not take the first one in time, so the others were left alone")
UNHANDLED = (FAILED_AGAIN, WAITS_AGAIN, NOT_TAKEN)
"""Outcomes of a replay whose first one was sent and not handled."""


class State(models.TextChoices):
    REQUESTED = "requested", _("requested")
    RUNNING = "running", _("running")
    WAITING = "waiting", _("waits for the first one")
    DONE = "done", _("done")
    STOPPED = "stopped", _("stopped")
    FAILED = "failed", _("failed")


class ActionQuerySet(models.QuerySet["OperatorAction"]):
    def open(self) -> ActionQuerySet:
        return self.filter(finished_at=None)

    def free(self) -> ActionQuerySet:
        """Those open in nobody's hands: of a worker that died the lease ends."""
        return self.open().filter(Q(claimed_until=None) | Q(claimed_until__lt=Now()))

    def claim(self, pk: int, lease: timedelta) -> OperatorAction | None:
        """Take the action for working on it; None when it is finished or in another worker's hands."""
        claimed = self.free().filter(pk=pk).update(claimed_until=Now() + models.Value(lease))
        return self.get(pk=pk) if claimed else None

    def to_resume(self, idle_for: timedelta) -> ActionQuerySet:
        """Those in nobody's hands that no outbox entry will come back to, and nobody has looked at for a while.

        An entry that is open comes again by itself; one that was given up is for an operator to decide about.
        """
        is_idle = Q(looked_at=None) | Q(looked_at__lt=Now() - idle_for)
        return self._unpromised().filter(is_idle)

    def let_be(self) -> ActionQuerySet:
        """Those in nobody's hands whose outbox entry an operator let be: nothing will come back to them."""
        return self._unpromised().filter(Exists(_promises().let_be()))

    def _unpromised(self) -> ActionQuerySet:
        return self.free().filter(~Exists(_promises().open()), ~Exists(_promises().given_up()))


def _promises() -> OutboxQuerySet:
    """The outbox entries of the action that the outer query is about."""
    promise = Func(OuterRef("pk"), function="jsonb_build_array", output_field=models.JSONField())
    return OutboxEntry.objects.filter(task=TASK, args=promise)


class OperatorAction(models.Model):
    """One thing an operator did: who, when, what, to how many, why, and what came of it.

    Written in one transaction with its outbox entry. The database refuses to delete a row, to empty the table, to
    change what was asked for, and to change a finished one: to all but a superuser, or an owner who drops the triggers.
    """

    key = models.UUIDField(_("key"), unique=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(_("action"), max_length=20, choices=Kind.choices)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, verbose_name=_("operator"), related_name="+")
    target = models.JSONField(_("target"), default=dict)
    count = models.PositiveIntegerField(_("rows when requested"))
    reason = Text(_("reason"), max_length=REASON_LENGTH)
    requested_at = models.DateTimeField(_("requested at"), db_default=Now())
    # The newest row that the action may touch: what it sends again and fails again is not sent a third time.
    up_to = models.BigIntegerField(default=0, editable=False)
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.REQUESTED.value)
    touched = models.PositiveIntegerField(_("rows done"), default=0)
    # A msgid with a place for the rows done, so that each reader gets it in their language; the detail is what a
    # database or a consumer said.
    outcome = models.CharField(_("outcome"), max_length=200, blank=True)
    detail = models.CharField(_("detail"), max_length=500, blank=True)
    # The event sent first, whose fate decides about the others: its queue, consumer, id, transaction.
    probe = models.JSONField(null=True, blank=True, editable=False)
    probed_at = models.DateTimeField(null=True, blank=True, editable=False)
    steps = models.PositiveIntegerField(default=0, editable=False)
    claimed_until = models.DateTimeField(null=True, blank=True, editable=False)
    looked_at = models.DateTimeField(null=True, blank=True, editable=False)
    # The last step that came to something, be it that it still waits: an action that is only tried stands still.
    moved_at = models.DateTimeField(null=True, blank=True, editable=False)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    count_limit = COUNT_LIMIT
    objects = ActionQuerySet.as_manager()

    class Meta:
        verbose_name = _("operator action")
        verbose_name_plural = _("operator actions")
        default_permissions = ("view",)
        permissions = [
            ("view_console", _("Can see the console")),
            ("operate_console", _("Can replay, delete and retry in the console")),
            ("view_payload", _("Can read payloads in the console")),
        ]
        constraints = [
            # actions.request(): two operators, or two clicks, do the same thing once
            models.UniqueConstraint(fields=["kind", "target"], condition=Q(finished_at=None), name="one_open_action"),
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="operator_action_kind"),
            models.CheckConstraint(condition=Q(state__in=State.values), name="operator_action_state"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} · {self.target_text}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """A new one has the number after the last, so that a gap would tell of a row that was taken away.

        A sequence would leave one for each transaction that is rolled back, such as that of a form sent twice. New ones
        wait for each other, until their transactions end. Processes of a former version that are still at work take
        their numbers from the sequence, which is moved along for them; one that does so at the same moment makes this
        an IntegrityError.
        """
        if self.pk is not None:
            super().save(*args, **kwargs)
            return
        with transaction.atomic(using="default"):
            with connections["default"].cursor() as cursor:
                cursor.execute("select pg_advisory_xact_lock(hashtext('stega record of actions'))")
            self.pk = (OperatorAction.objects.aggregate(last=models.Max("pk"))["last"] or 0) + 1
            _move_sequence_to(self.pk)
            super().save(*args, **kwargs)

    def get_absolute_url(self) -> str:
        return reverse("operations:action", args=[self.pk])

    @property
    @admin.display(description=_("target"))
    def target_text(self) -> str:
        """What it was done to, a cause and the name of a schedule in the active language."""
        parts = ("cause", "type", "consumer", "queue", "id", "task", "key")
        told = {"cause": reasons.translated}
        words = [told.get(part, str)(str(self.target[part])) for part in parts if self.target.get(part)]
        if name := self.target.get("name"):
            words.append(gettext(str(name)))
        return " · ".join(words).replace("#", "…")

    def promise_key(self, step: str = "") -> uuid.UUID:
        """The key of the outbox entry that works on the action; of a later one with the name of its step."""
        return uuid.uuid5(_PROMISES, f"{self.key} {step}")

    @property
    @admin.display(description=_("state"), ordering="state")
    def state_text(self) -> str:
        """The state in the active language. What others go on with is handed over: more the action cannot tell."""
        hands_over = self.kind in HANDS_OVER and self.touched
        return gettext("handed over") if self.state == State.DONE and hands_over else self.get_state_display()

    @property
    @admin.display(description=_("outcome"))
    def outcome_text(self) -> str:
        """What came of it, in the active language, with how many rows were touched."""
        return (
            gettext(self.outcome) % {"count": number_format(self.touched, force_grouping=True)} if self.outcome else ""
        )

    @property
    def touched_text(self) -> str:
        """What was done to the rows that it touched, in the active language: what is sent is not yet handled."""
        return self._done_to(self.touched)

    @property
    def rows_heading(self) -> str:
        """The same of rows in general, however many they are."""
        return gettext("Rows %(what)s") % {"what": self._done_to(2)}

    def _done_to(self, rows: int) -> str:
        if self.outcome in UNHANDLED:
            return npgettext("rows", "sent, none handled", "sent, none handled", rows)
        if self.kind in (Kind.REPLAY_LETTER, Kind.REPLAY_GROUP):
            return npgettext("rows", "sent", "sent", rows)
        if self.kind in HANDS_OVER:
            return npgettext("rows", "handed over", "handed over", rows)
        return npgettext("rows", "done", "done", rows)

    @property
    @admin.display(description=_("rows"), ordering="touched")
    def rows_text(self) -> str:
        return f"{number_format(self.touched, force_grouping=True)} {self.touched_text}"

    @property
    def is_open(self) -> bool:
        return self.finished_at is None


def _move_sequence_to(number: int) -> None:
    """At least there. Step by step, for it never goes back, and the roles of processes may do no more."""
    with connections["default"].cursor() as cursor:
        last = 0
        while last < number:
            cursor.execute("select nextval(pg_get_serial_sequence('operations_operatoraction', 'id'))")
            (last,) = cursor.fetchone()


class SampleQuerySet(models.QuerySet["Sample"]):
    def take(self, at: datetime, values: Mapping[str, float]) -> int:
        """Write the values of one minute; of several clusters that sample it, one does. Returns how many were new."""
        before = self.filter(at=at).count()
        self.bulk_create(
            (Sample(at=at, series=series, value=value) for series, value in values.items()), ignore_conflicts=True
        )
        return self.filter(at=at).count() - before

    def since(self, at: datetime, prefixes: Iterable[str]) -> SampleQuerySet:
        """The samples of all series whose name begins with one of these, in their order."""
        wanted = Q()
        for prefix in prefixes:
            wanted |= Q(series__startswith=prefix)
        return self.filter(wanted, at__gte=at).order_by("at")


class Sample(models.Model):
    """One figure of one minute."""

    at = models.DateTimeField()
    series = models.CharField(max_length=200)
    value = models.FloatField()

    objects = SampleQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            # SampleQuerySet.take(): one sample per minute; since(): a chart reads all series of an hour or a day
            models.UniqueConstraint(fields=["at", "series"], name="sample_once"),
        ]

    def __str__(self) -> str:
        return f"{self.series} {self.at:%H:%M} {self.value:g}"

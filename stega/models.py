"""What the processes keep on `default`: the outbox, messages in hand that a worker may die of, shared settings."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connections, models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class OutboxQuerySet(models.QuerySet["OutboxEntry"]):
    def add(self, task: str, rows: Iterable[tuple[uuid.UUID, Sequence[Any]]]) -> list[uuid.UUID]:
        """Write the entries whose keys are new, in one statement; returns those keys.

        Raw SQL, since only RETURNING tells which rows a concurrent writer had not written first.
        """
        given = json.dumps([{"key": str(key), "args": list(args)} for key, args in rows], allow_nan=False)
        statement = """
            insert into stega_outboxentry (key, task, args, attempts, last_error)
            select key, %s, args, 0, '' from jsonb_to_recordset(%s) as given (key uuid, args jsonb)
            on conflict (key) do nothing
            returning key
        """
        with connections[self.db].cursor() as cursor:
            cursor.execute(statement, [task, given])
            return [key for (key,) in cursor.fetchall()]

    def mark_relayed(self, keys: Sequence[uuid.UUID]) -> None:
        """In a transaction of its own that does not wait for the disk: a lost mark means relaying again."""
        statement = """
            update stega_outboxentry set relayed_at = now()
            from set_config('synchronous_commit', 'off', true)
            where key = any(%s)
        """
        with connections[self.db].cursor() as cursor:
            cursor.execute(statement, [list(keys)])

    def open(self) -> OutboxQuerySet:
        """Neither done nor given up."""
        return self.filter(done_at=None, failed_at=None)

    def given_up(self) -> OutboxQuerySet:
        """Those an operator has to decide about. Let be, an entry has an end beside its failure."""
        return self.filter(failed_at__isnull=False, done_at=None)

    def let_be(self) -> OutboxQuerySet:
        """Given up, and settled so by an operator: never run again, and pruned as if done."""
        return self.filter(failed_at__isnull=False, done_at__isnull=False)

    def reopen(self, entries: models.QuerySet[Any, Any]) -> int:
        """Give those of the entries that were given up another TASK_MAX_ATTEMPTS runs; the sweep relays them."""
        return (
            self.given_up()
            .filter(pk__in=entries)
            .update(failed_at=None, relayed_at=None, attempts=0, reopened_at=Now())
        )

    def settle(self, entries: models.QuerySet[Any, Any]) -> int:
        """Let those of the entries be that were given up."""
        return self.given_up().filter(pk__in=entries).update(done_at=Now())

    def oldest(self) -> datetime | None:
        """Since when the entry waits that has waited longest: since it was written, or let run again."""
        written = self.filter(reopened_at=None).order_by("created_at").values_list("created_at", flat=True).first()
        reopened = self.exclude(reopened_at=None).order_by("reopened_at").values_list("reopened_at", flat=True).first()
        return min((moment for moment in (written, reopened) if moment), default=None)

    def due(self) -> OutboxQuerySet:
        """What the sweep relays: overlooked by the fast path, or relayed long ago and never done.

        On the database's clock. By state and age, never by "id above the last one seen": the order of ids is not the
        order of commits.
        """
        overlooked = Q(relayed_at=None, created_at__lt=Now() - timedelta(seconds=settings.OUTBOX_SWEEP_AFTER_SECONDS))
        lost = Q(relayed_at__lt=Now() - timedelta(seconds=settings.OUTBOX_LOST_AFTER_SECONDS))
        return self.open().filter(overlooked | lost).order_by("created_at")


class OutboxEntry(models.Model):
    """One task, promised in the same transaction as the change that asks for it."""

    key = models.UUIDField(_("key"), unique=True)
    task = models.CharField(_("task"), max_length=100)
    args = models.JSONField(_("arguments"), default=list)
    created_at = models.DateTimeField(_("created at"), db_default=Now())
    relayed_at = models.DateTimeField(_("relayed at"), null=True, blank=True)
    done_at = models.DateTimeField(_("done at"), null=True, blank=True)
    failed_at = models.DateTimeField(_("given up at"), null=True, blank=True)
    # Given up, and let run again by an operator: from then on it waits.
    reopened_at = models.DateTimeField(_("tried again at"), null=True, blank=True, editable=False)
    attempts = models.PositiveIntegerField(_("failed attempts"), default=0)
    last_error = models.CharField(_("last error"), max_length=500, blank=True)

    objects = OutboxQuerySet.as_manager()

    class Meta:
        verbose_name = _("outbox entry")
        verbose_name_plural = _("outbox entries")
        indexes = [
            # OutboxQuerySet.due(): the sweep of each minute looks at open entries only
            models.Index(fields=["created_at"], name="outbox_open", condition=Q(done_at=None, failed_at=None)),
            # OutboxQuerySet.oldest(): the few that an operator let run again
            models.Index(
                fields=["reopened_at"],
                name="outbox_reopened",
                condition=Q(done_at=None, failed_at=None, reopened_at__isnull=False),
            ),
            # stega.outbox.prune(): the oldest done entries
            models.Index(fields=["done_at"], name="outbox_done", condition=Q(done_at__isnull=False)),
            # the operators' list of what was given up, newest first; and of that what they let be
            models.Index(fields=["-failed_at"], name="outbox_given_up", condition=Q(failed_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.task} {self.key}"

    @property
    def is_given_up(self) -> bool:
        return self.failed_at is not None and self.done_at is None

    @property
    def is_let_be(self) -> bool:
        return self.failed_at is not None and self.done_at is not None


class InHandQuerySet(models.QuerySet["MessageInHand"]):
    def note(self, queue: str, consumer: str, event_id: int, event_at: datetime, holder: str) -> int:
        """Write down that the holder begins with the message; returns how many holders have died of it.

        The row exists because somebody died or was cut off with the message's batch open: that is the first. One commit
        that need not be on disk, since it outlives the holder, not the server.
        """
        statement = """
            with noted as (
                insert into stega_messageinhand as old (queue, consumer, event_id, event_at, holder, deaths, noted_at)
                values (%s, %s, %s, %s, %s, 1, now())
                on conflict (queue, consumer, event_id, event_at) do update
                set deaths = old.deaths + (old.holder <> excluded.holder)::integer,
                    holder = excluded.holder, noted_at = now()
                returning deaths
            )
            select deaths from noted, set_config('synchronous_commit', 'off', true)
        """
        with connections[self.db].cursor() as cursor:
            cursor.execute(statement, [queue, consumer, event_id, event_at, holder])
            return int(cursor.fetchone()[0])

    def forget(self, holder: str, **message: Any) -> None:
        """The holder is through with the message, or without one with all it had noted."""
        self.filter(holder=holder, **message).delete()


class MessageInHand(models.Model):
    """A message of a batch that came again, noted before its handler is called and forgotten after."""

    queue = models.TextField()
    consumer = models.TextField()
    event_id = models.BigIntegerField()
    event_at = models.DateTimeField()  # tells the event from one of a queue made anew, whose ids begin again
    holder = models.TextField()  # who has it in hand, one name per start
    deaths = models.PositiveIntegerField()
    noted_at = models.DateTimeField()

    objects = InHandQuerySet.as_manager()

    class Meta:
        constraints = [  # what `note()` looks a message up by
            models.UniqueConstraint(fields=["queue", "consumer", "event_id", "event_at"], name="message_in_hand")
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.event_id}"


class SharedSettingQuerySet(models.QuerySet["SharedSetting"]):
    def tell(self, values: Mapping[str, str], told_by: str) -> None:
        """Write down the values in one statement, whoever else does so at the same moment."""
        rows = [SharedSetting(name=name, value=value, told_by=told_by) for name, value in sorted(values.items())]
        update = ["value", "told_by", "told_at"]
        self.bulk_create(rows, update_conflicts=True, unique_fields=["name"], update_fields=update)


class SharedSetting(models.Model):
    """One of the settings that every process must share, as the process told it that brought it last."""

    name = models.TextField(unique=True)
    value = models.TextField()  # of a secret only a digest
    told_by = models.TextField()
    told_at = models.DateTimeField(db_default=Now())

    objects = SharedSettingQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"

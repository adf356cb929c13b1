"""The outbox: what has been promised in a transaction and must still be done outside of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from datetime import timedelta
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
        keys, args = zip(*((key, json.dumps(list(args), allow_nan=False)) for key, args in rows), strict=True)
        statement = """
            insert into stega_outboxentry (key, task, args, attempts, last_error)
            select key, %s, args, 0, '' from unnest(%s::uuid[], %s::jsonb[]) as given (key, args)
            on conflict (key) do nothing
            returning key
        """
        with connections[self.db].cursor() as cursor:
            cursor.execute(statement, [task, list(keys), list(args)])
            return [key for (key,) in cursor.fetchall()]

    def open(self) -> OutboxQuerySet:
        """Neither done nor given up."""
        return self.filter(done_at=None, failed_at=None)

    def reopen(self, entries: models.QuerySet[Any, Any]) -> int:
        """Give those of the entries that were given up another TASK_MAX_ATTEMPTS runs; the sweep relays them."""
        given_up = self.filter(pk__in=entries, failed_at__isnull=False)
        return given_up.update(failed_at=None, relayed_at=None, attempts=0)

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
    attempts = models.PositiveIntegerField(_("failed attempts"), default=0)
    last_error = models.CharField(_("last error"), max_length=500, blank=True)

    objects = OutboxQuerySet.as_manager()

    class Meta:
        verbose_name = _("outbox entry")
        verbose_name_plural = _("outbox entries")
        indexes = [
            # OutboxQuerySet.due(): the sweep of each minute looks at open entries only
            models.Index(fields=["created_at"], name="outbox_open", condition=Q(done_at=None, failed_at=None)),
            # stega.outbox.prune(): the oldest done entries
            models.Index(fields=["done_at"], name="outbox_done", condition=Q(done_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.task} {self.key}"

"""What django-q2 runs for this app: periodic work on the ledger."""

from datetime import timedelta

from django.conf import settings
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from notifications.models import Delivery

GRACE = timedelta(days=1)
"""How far behind its last moment an event may still be on its way."""


def prune_ledger(days: int = 90) -> dict[str, int]:
    """Close rows whose event comes no more, and delete what was closed for `days`; run by a schedule each day.

    A row stays open when its event ended elsewhere, as one does that kills its worker. Two statements, each its own
    transaction; safe to repeat, at any time.
    """
    lost = Now() - timedelta(seconds=settings.DELIVERY_MAX_AGE_SECONDS) - GRACE
    closed = Delivery.objects.open().filter(created_at__lt=lost).give_up(gettext_noop("Its event comes no more"))
    pruned, _ = Delivery.objects.closed().filter(created_at__lt=Now() - timedelta(days=days)).delete()
    return {"closed": closed, "pruned": pruned}

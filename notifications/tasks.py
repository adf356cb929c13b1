"""What django-q2 runs for this app: periodic work on the ledger."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from notifications.models import Delivery, DeliveryQuerySet, State
from stega.database.pruning import deadline, pieces
from stega.pgque import oversight

GRACE = timedelta(days=1)
"""How far behind its last moment an event may still be on its way."""
GIVEN_UP_STAYS = timedelta(days=365)


def prune_ledger(days: int = 90) -> dict[str, int]:
    """Close rows whose event comes no more, and delete those of events that are over for `days`; run each hour.

    A row stays open when its event ended elsewhere, as one does that kills its worker. An event may come again, and its
    rows say then who must not be told twice, so they stay together: while it has a dead letter or waits for a retry,
    until `days` after the last try to tell somebody, and for GIVEN_UP_STAYS where somebody was given up, lest a letter
    that is just being replayed has none. Piece by piece, each its own transaction; safe to repeat, at any time.
    """
    until = deadline()
    lost = Now() - timedelta(seconds=settings.DELIVERY_MAX_AGE_SECONDS) - GRACE
    ended = Delivery.objects.open().filter(created_at__lt=lost)
    closed = sum(_give_up(ended, piece) for piece in pieces(ended, "created_at", until=until))
    old = Now() - timedelta(days=days)
    is_needed = (
        Q(created_at__gte=old)
        | Q(claimed_at__gte=old)
        | Q(state=State.GIVEN_UP, created_at__gte=Now() - GIVEN_UP_STAYS)
    )
    needed = Delivery.objects.filter(is_needed, event_key=OuterRef("event_key"))
    over = Delivery.objects.closed().filter(created_at__lt=old)
    come_again = set(oversight.keys_that_may_come_again())
    pruned = 0
    for piece in pieces(over.filter(~Exists(needed)), "created_at", "event_key", until=until):
        ids = [row.pk for row in piece if row.event_key not in come_again]
        pruned += over.filter(pk__in=ids).delete()[0]
    return {"closed": closed, "pruned": pruned}


def _give_up(ended: DeliveryQuerySet, piece: list[Any]) -> int:
    return ended.filter(pk__in=[row.pk for row in piece]).give_up(gettext_noop("Its event comes no more"))

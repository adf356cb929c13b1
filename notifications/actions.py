"""The writes of what people chose."""

from collections.abc import Collection

from django.db import transaction

from accounts.models import User
from notifications.models import MutedTicket, UnwantedKind


def choose_kinds(user: User, wanted: Collection[str], offered: Collection[str]) -> None:
    """Keep what the user wants of the kinds offered; one transaction. What was not offered stays as it is."""
    unwanted = set(offered) - set(wanted)
    with transaction.atomic():
        UnwantedKind.objects.filter(user=user, kind__in=wanted).delete()
        rows = [UnwantedKind(user=user, kind=kind) for kind in sorted(unwanted)]
        UnwantedKind.objects.bulk_create(rows, ignore_conflicts=True)


def mute(user: User, ticket_id: int) -> None:
    """Spare the user the ticket's small talk from now on, also of events under way. Safe to repeat."""
    MutedTicket.objects.bulk_create([MutedTicket(user=user, ticket_id=ticket_id)], ignore_conflicts=True)


def unmute(user: User, ticket_id: int) -> None:
    MutedTicket.objects.filter(user=user, ticket_id=ticket_id).delete()

from typing import Any

from django import template

from accounts.models import User
from notifications.messages import event_name
from notifications.models import Delivery, MutedTicket
from notifications.notice import Channel

register = template.Library()

SHOWN = 100
"""How many deliveries of one ticket the page lists: the newest, in the order of its history."""


@register.inclusion_tag("notifications/deliveries.html")
def ticket_deliveries(ticket_id: int) -> dict[str, Any]:
    """The ledger of one ticket, for staff: who was told, by which channel, when, at which attempt, or why not."""
    deliveries = list(Delivery.objects.filter(ticket_id=ticket_id).order_by("-created_at", "-pk")[:SHOWN])
    ids = {int(each.recipient.removeprefix("user:")) for each in deliveries if each.channel == Channel.EMAIL}
    names = {f"user:{user.pk}": str(user) for user in User.objects.filter(pk__in=ids)}
    lines = [
        (each, names.get(each.recipient, each.address), event_name(each.event_type)) for each in reversed(deliveries)
    ]
    return {"lines": lines}


@register.inclusion_tag("notifications/mute.html", takes_context=True)
def mute_button(context: dict[str, Any], ticket_id: int, author_id: int, assignee_id: int | None) -> dict[str, Any]:
    """The ticket's mute button for its author and assignee; for who muted it, the one that ends that."""
    user = context["user"]
    return {
        "ticket_id": ticket_id,
        "is_muted": MutedTicket.objects.filter(user=user, ticket_id=ticket_id).exists(),
        "is_concerned": user.pk in (author_id, assignee_id),
        "csrf_token": context["csrf_token"],
    }

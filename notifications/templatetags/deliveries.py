from typing import Any

from django import template

from accounts.models import User
from notifications.messages import event_name
from notifications.models import Channel, Delivery

register = template.Library()

SHOWN = 100
"""How many deliveries of one ticket the page lists, newest first."""


@register.inclusion_tag("notifications/deliveries.html")
def ticket_deliveries(ticket_id: int) -> dict[str, Any]:
    """The ledger of one ticket, for staff: who was told, by which channel, when, at which attempt, or why not."""
    deliveries = list(Delivery.objects.filter(ticket_id=ticket_id).order_by("-created_at", "-pk")[:SHOWN])
    ids = {int(each.recipient.removeprefix("user:")) for each in deliveries if each.channel == Channel.EMAIL}
    names = {f"user:{user.pk}": str(user) for user in User.objects.filter(pk__in=ids)}
    lines = [(each, names.get(each.recipient, each.address), event_name(each.event_type)) for each in deliveries]
    return {"lines": lines}

"""How the pages of the help desk show deadlines and history."""

from typing import Any

from django import template
from django.utils import timezone

from stega.wording import moments
from tickets import history, sla
from tickets.models import Ticket, TicketEvent
from tickets.workflow import RUNNING, Status

register = template.Library()


@register.inclusion_tag("tickets/_deadline.html")
def deadline(ticket: Ticket) -> dict[str, Any]:
    """When the ticket is due; for a finished one only whether it was late."""
    now = timezone.now()
    running = ticket.status in RUNNING or ticket.status == Status.WAITING
    return {
        "moment": ticket.sla_due_at,
        "text": moments.until(ticket.sla_due_at, now) if running else "",
        "exact": moments.exact(ticket.sla_due_at),
        "is_late": bool(ticket.sla_breached_at) or (running and sla.is_overdue(ticket.sla_due_at, now)),
    }


@register.filter
def sentence(event: TicketEvent) -> str:
    return history.sentence(event.type, event.payload)

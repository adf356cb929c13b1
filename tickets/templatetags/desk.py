"""How the pages of the help desk show times, deadlines and history."""

from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.formats import date_format

from tickets import history, moments, sla
from tickets.models import Ticket, TicketEvent
from tickets.workflow import RUNNING, Status

register = template.Library()


@register.inclusion_tag("tickets/_moment.html")
def moment(value: datetime) -> dict[str, Any]:
    """A past time as "2 h ago", with the exact time for a closer look."""
    return {"moment": value, "text": moments.ago(value, timezone.now()), "exact": exact(value)}


@register.inclusion_tag("tickets/_deadline.html")
def deadline(ticket: Ticket) -> dict[str, Any]:
    """When the ticket is due; for a finished one only whether it was late."""
    now = timezone.now()
    running = ticket.status in RUNNING or ticket.status == Status.WAITING
    return {
        "moment": ticket.sla_due_at,
        "text": moments.until(ticket.sla_due_at, now) if running else "",
        "exact": exact(ticket.sla_due_at),
        "is_late": bool(ticket.sla_breached_at) or (running and sla.is_overdue(ticket.sla_due_at, now)),
    }


@register.filter
def exact(value: datetime) -> str:
    return f"{date_format(timezone.localtime(value), 'DATETIME_FORMAT')} ({timezone.get_current_timezone_name()})"


@register.filter
def sentence(event: TicketEvent) -> str:
    return history.sentence(event.type, event.payload)

"""Where the pages of a ticket are, and what they left behind."""

from django.urls import reverse

from stega.models import OutboxEntry
from tickets.models import Comment, TicketEvent

HUGE = "9" * 5_000


def page(ticket, step=None):
    return reverse(f"tickets:{step or 'detail'}", args=[ticket.pk])


def texts(response):
    return response.content.decode()


def nothing_written():
    return not (TicketEvent.objects.exists() or Comment.objects.exists() or OutboxEntry.objects.exists())

"""Stands for `tickets.audience`: what settings.AUDIENCE names while notifications are tested on their own."""

from stega.audience import TicketAudience

tickets: dict[int, TicketAudience] = {}
comments: dict[int, str] = {}


def ticket_audience(ticket_id: int) -> TicketAudience | None:
    return tickets.get(ticket_id)


def comment_text(comment_id: int, reader_id: int) -> str | None:
    return comments.get(comment_id)

"""Answers `stega.audience`: whom a ticket concerns, from current data."""

from accounts.models import User
from stega.audience import TicketAudience
from tickets.models import Comment, Ticket

_COLUMNS = (
    *("pk", "title", "product_id", "product__name", "priority", "status", "author_id", "assignee_id"),
    *("created_at", "sla_due_at", "sla_breached_at", "product__slack_webhook_url"),
)


def ticket_audience(ticket_id: int) -> TicketAudience | None:
    """One query without models: every mail asks, and making them takes longer than asking."""
    rows = Ticket.objects.filter(pk=ticket_id).order_by().values_list(*_COLUMNS)
    return next((TicketAudience(*row) for row in rows), None)


def comment_text(comment_id: int, reader_id: int) -> str | None:
    reader = User.objects.only("role").filter(pk=reader_id).first()
    comment = Comment.objects.filter(pk=comment_id, is_internal=False).first()
    if reader is None or comment is None:
        return None
    is_visible = Ticket.objects.visible_to(reader).filter(pk=comment.ticket_id).exists()
    return comment.body if is_visible else None

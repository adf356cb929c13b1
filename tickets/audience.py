"""Answers `stega.audience`: whom a ticket concerns, from current data."""

from django.db import DEFAULT_DB_ALIAS

from accounts.models import User
from stega.audience import TicketAudience
from stega.database import plans
from tickets.models import Comment, Ticket


def ticket_audience(ticket_id: int) -> TicketAudience | None:
    """Raw, since every mail asks and the ORM takes five times as long as the question."""
    statement = """
        select t.id, t.title::text, t.product_id, p.name::text, t.priority::text, t.status::text, t.author_id,
            t.assignee_id, t.created_at, t.sla_due_at, t.sla_breached_at, p.slack_webhook_url::text
        from tickets_ticket t join tickets_product p on p.id = t.product_id
        where t.id = %s
    """
    with plans.cursor(DEFAULT_DB_ALIAS) as cursor:
        cursor.execute(statement, [ticket_id])
        row = cursor.fetchone()
    return None if row is None else TicketAudience(*row)


def comment_text(comment_id: int, reader_id: int) -> str | None:
    reader = User.objects.only("role").filter(pk=reader_id).first()
    comment = Comment.objects.filter(pk=comment_id, is_internal=False).first()
    if reader is None or comment is None:
        return None
    is_visible = Ticket.objects.visible_to(reader).filter(pk=comment.ticket_id).exists()
    return comment.body if is_visible else None

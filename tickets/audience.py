"""Answers `stega.audience`: whom a ticket concerns, from current data."""

from accounts.models import User
from stega.audience import TicketAudience
from tickets.models import Comment, Product, Ticket


def ticket_audience(ticket_id: int) -> TicketAudience | None:
    ticket = Ticket.objects.select_related("product").filter(pk=ticket_id).first()
    if ticket is None:
        return None
    commenters = Comment.objects.filter(ticket=ticket, is_internal=False).values_list("author_id", flat=True).distinct()
    people = (ticket.author_id, ticket.assignee_id, *commenters)
    return TicketAudience(
        ticket_id=ticket.pk,
        title=ticket.title,
        product_id=ticket.product_id,
        product_name=ticket.product.name,
        priority=ticket.priority,
        status=ticket.status,
        author_id=ticket.author_id,
        assignee_id=ticket.assignee_id,
        opened_at=ticket.created_at,
        sla_due_at=ticket.sla_due_at,
        sla_breached_at=ticket.sla_breached_at,
        participant_ids=frozenset(person for person in people if person is not None),
        slack_webhook_url=ticket.product.slack_webhook_url,
    )


def product_slack_webhook(product_id: int) -> str:
    """The Slack webhook of a product; empty when it has none or is gone."""
    return Product.objects.filter(pk=product_id).values_list("slack_webhook_url", flat=True).first() or ""


def comment_text(comment_id: int, reader_id: int) -> str | None:
    reader = User.objects.filter(pk=reader_id).first()
    comment = Comment.objects.filter(pk=comment_id, is_internal=False).first()
    if reader is None or comment is None:
        return None
    is_visible = Ticket.objects.visible_to(reader).filter(pk=comment.ticket_id).exists()
    return comment.body if is_visible else None

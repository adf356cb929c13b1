"""How `notifications` learns whom a ticket concerns without importing `tickets`: through settings.AUDIENCE."""

from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Protocol, cast

from django.conf import settings


@dataclass(frozen=True)
class TicketAudience:
    """A ticket as those who tell people about it need it, read now: never what was true when the event was sent."""

    ticket_id: int
    title: str
    product_id: int
    product_name: str
    priority: str
    status: str
    author_id: int
    assignee_id: int | None
    opened_at: datetime
    sla_due_at: datetime
    sla_breached_at: datetime | None
    slack_webhook_url: str = field(repr=False)
    """A secret: never shown, never logged. Empty when the product has none."""


class _AudienceModule(Protocol):
    def ticket_audience(self, ticket_id: int) -> TicketAudience | None: ...

    def comment_text(self, comment_id: int, reader_id: int) -> str | None: ...


def ticket_audience(ticket_id: int) -> TicketAudience | None:
    """None when the ticket is gone."""
    return _module().ticket_audience(ticket_id)


def comment_text(comment_id: int, reader_id: int) -> str | None:
    """A public comment; None when it is gone, internal or on a ticket that the reader may not see."""
    return _module().comment_text(comment_id, reader_id)


def _module() -> _AudienceModule:
    return cast(_AudienceModule, import_module(settings.AUDIENCE))

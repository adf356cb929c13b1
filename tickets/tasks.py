"""What the task worker runs for the help desk. The publish_* tasks load a line of the history and publish it under the
key of their outbox entry: running one again publishes the same fact, which consumers tell once.
"""

import uuid
from collections.abc import Callable
from datetime import UTC
from typing import Any

from django.db import transaction

from stega import outbox
from stega.pgque.publishing import event_key as key_of
from stega.pgque.publishing import publish
from tickets import report, sla
from tickets.models import Breach, Product, Ticket, TicketEvent

SCAN_CHUNK = 1_000


def publish_ticket_created(event_id: int, *, event_key: uuid.UUID) -> dict[str, Any]:
    return _publish("ticket.created", event_id, event_key, lambda event: _priority_and_product(event.ticket))


def publish_ticket_assigned(event_id: int, *, event_key: uuid.UUID) -> dict[str, Any]:
    def people(event: TicketEvent) -> dict[str, Any]:
        return {"assignee_id": event.payload["assignee_id"], "actor_id": event.actor_id}

    return _publish("ticket.assigned", event_id, event_key, people)


def publish_ticket_status_changed(event_id: int, *, event_key: uuid.UUID) -> dict[str, Any]:
    def change(event: TicketEvent) -> dict[str, Any]:
        return {**event.payload, "actor_id": event.actor_id}

    return _publish("ticket.status_changed", event_id, event_key, change)


def publish_ticket_comment_added(event_id: int, *, event_key: uuid.UUID) -> dict[str, Any]:
    def comment(event: TicketEvent) -> dict[str, Any]:
        return {"comment_id": event.payload["comment_id"], "author_id": event.actor_id}

    return _publish("ticket.comment_added", event_id, event_key, comment)


def publish_ticket_resolved(event_id: int, *, event_key: uuid.UUID) -> dict[str, Any]:
    return _publish("ticket.resolved", event_id, event_key, lambda event: {"actor_id": event.actor_id})


def publish_sla_breached(event_id: int, *, event_key: uuid.UUID) -> dict[str, Any]:
    def breach(event: TicketEvent) -> dict[str, Any]:
        return {"elapsed_hours": event.payload["elapsed_hours"], **_priority_and_product(event.ticket)}

    return _publish("ticket.sla_breached", event_id, event_key, breach)


def publish_weekly_report(payload: dict[str, Any], *, event_key: uuid.UUID) -> dict[str, Any]:
    publish("report.weekly_ready", payload, event_key)
    return {"published": "report.weekly_ready", "product_id": payload["product_id"]}


def check_sla_breaches() -> dict[str, Any]:
    """Record every ticket past its deadline and enqueue `ticket.sla_breached` for it, once per ticket and deadline.

    In chunks, each one transaction on `default`: the mark, the line in the history and the outbox entry stand or fall
    together. Any number of clusters may scan at once, and scanning again finds nothing.
    """
    found = 0
    while chunk := _record_breaches():
        found += chunk
    return {"breaches_found": found}


def generate_activity_report(product_id: int | None = None) -> dict[str, Any]:
    """Enqueue `report.weekly_ready` for one product, or for every active one: once per product and ISO week.

    One transaction on `default`. The figures are those of this moment, for the seven days before it.
    """
    with transaction.atomic(using="default"):
        products = (
            Product.objects.filter(is_active=True) if product_id is None else Product.objects.filter(pk=product_id)
        )
        reports = report.weekly(products)
        if product_id is not None and not reports:
            return {"reports_generated": 0, "skipped": "product not found"}
        entries = [(key_of("report.weekly_ready", each.product_id, each.week), (each.payload(),)) for each in reports]
        return {"reports_generated": outbox.enqueue_many("publish_weekly_report", entries)}


def _publish(
    event_type: str, event_id: int, key: uuid.UUID, about: Callable[[TicketEvent], dict[str, Any]]
) -> dict[str, Any]:
    """Publish what a line of the history tells, with what that is about; nothing when it went with its ticket."""
    event = TicketEvent.objects.select_related("ticket__product").filter(pk=event_id).first()
    if event is None:
        return {"skipped": "the ticket is gone"}
    publish(event_type, {"ticket_id": event.ticket_id, "title": event.ticket.title, **about(event)}, key)
    return {"published": event_type, "ticket_id": event.ticket_id}


def _priority_and_product(ticket: Ticket) -> dict[str, str]:
    return {"priority": ticket.priority, "product_name": ticket.product.name}


def _record_breaches() -> int:
    with transaction.atomic(using="default"):
        breaches = Ticket.objects.mark_breached(SCAN_CHUNK)
        events = TicketEvent.objects.add_breaches({breach.ticket_id: _history(breach) for breach in breaches})
        keys = {breach.ticket_id: _key(breach) for breach in breaches}
        outbox.enqueue_many("publish_sla_breached", [(keys[ticket], (event,)) for ticket, event in events])
    return len(breaches)


def _key(breach: Breach) -> uuid.UUID:
    return key_of("ticket.sla_breached", breach.ticket_id, _instant(breach))


def _history(breach: Breach) -> dict[str, Any]:
    return {
        "priority": breach.priority,
        "sla_due_at": _instant(breach),
        "elapsed_hours": sla.elapsed_hours(breach.created_at, breach.breached_at),
    }


def _instant(breach: Breach) -> str:
    return breach.due_at.astimezone(UTC).isoformat()

"""A line of a ticket's history: as a sentence without its subject, and as the event that tells people of it."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from stega.pgque.publishing import event_key
from tickets.sla import Priority
from tickets.workflow import Status


def sentence(type_: str, payload: Mapping[str, Any]) -> str:
    """What happened, after the name of who did it: "set the status from “Open” to “Resolved”"."""
    return _SENTENCES[type_](payload)


def _created(payload: Mapping[str, Any]) -> str:
    return _("opened the ticket with priority “%(priority)s”") % {"priority": Priority(payload["priority"]).label}


def _assigned(payload: Mapping[str, Any]) -> str:
    if payload["assignee_name"] is None:
        return _("unassigned %(previous)s") % {"previous": payload["previous_name"]}
    if payload["previous_name"] is None:
        return _("assigned the ticket to %(assignee)s") % {"assignee": payload["assignee_name"]}
    names = {"previous": payload["previous_name"], "assignee": payload["assignee_name"]}
    return _("handed the ticket over from %(previous)s to %(assignee)s") % names


def _status_changed(payload: Mapping[str, Any]) -> str:
    labels = {"old": Status(payload["old_status"]).label, "new": Status(payload["new_status"]).label}
    return _("set the status from “%(old)s” to “%(new)s”") % labels


def _priority_changed(payload: Mapping[str, Any]) -> str:
    labels = {"old": Priority(payload["old_priority"]).label, "new": Priority(payload["new_priority"]).label}
    return _("set the priority from “%(old)s” to “%(new)s”") % labels


def _comment_added(payload: Mapping[str, Any]) -> str:
    return _("added an internal comment") if payload["is_internal"] else _("added a comment")


def _sla_breached(payload: Mapping[str, Any]) -> str:
    return _("noticed that the SLA deadline has passed")


_SENTENCES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "created": _created,
    "assigned": _assigned,
    "status_changed": _status_changed,
    "priority_changed": _priority_changed,
    "comment_added": _comment_added,
    "sla_breached": _sla_breached,
}


def published_as(number: int, ticket_id: int, type_: str, payload: Mapping[str, Any]) -> tuple[str, uuid.UUID] | None:
    """Type and key of the event that a line (by its number) is published as; None for one that nobody is told of."""
    if type_ == "sla_breached":
        return "ticket.sla_breached", event_key("ticket.sla_breached", ticket_id, payload["sla_due_at"])
    if type_ == "priority_changed" or payload.get("is_internal") or payload.get("assignee_id", number) is None:
        return None
    is_resolved = type_ == "status_changed" and payload["new_status"] == Status.RESOLVED
    event_type = "ticket.resolved" if is_resolved else f"ticket.{type_}"
    return event_type, event_key(event_type, number)

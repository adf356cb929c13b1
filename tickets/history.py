"""A line of a ticket's history as a sentence, without its subject."""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

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

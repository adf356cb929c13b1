"""Every event type: what its payload holds, who publishes it, who handles it. The one place that names them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_noop

NOTIFICATION_WORKER = "notification_worker"
"""The plain consumer that tells people by e-mail and Slack."""

SLA_BREACH_DISPATCHER = "sla_breach_dispatcher"
"""The cooperative group that tells people about breached SLAs."""


@dataclass(frozen=True)
class EventType:
    """A type is named `noun.past_participle`; a field's type is that of its JSON value. `meaning` is a msgid."""

    name: str
    meaning: str
    payload: Mapping[str, type | tuple[type, ...]]
    publisher: str
    consumers: tuple[str, ...]


_OPTIONAL_NUMBER = (int, float, type(None))

EVENT_TYPES: dict[str, EventType] = {
    event_type.name: event_type
    for event_type in (
        EventType(
            "ticket.welcome",
            gettext_noop("Somebody has signed in for the first time."),
            {"user_id": int, "email": str, "display_name": str},
            "accounts.tasks.send_welcome_notification",
            (NOTIFICATION_WORKER,),
        ),
        EventType(
            "ticket.sla_breached",
            gettext_noop("A ticket was still open at the end of its deadline. Once per ticket and deadline."),
            {"ticket_id": int, "title": str, "priority": str, "product_name": str, "elapsed_hours": int},
            "tickets.tasks.publish_sla_breached",
            (SLA_BREACH_DISPATCHER,),
        ),
        EventType(
            "report.weekly_ready",
            gettext_noop("The numbers of a product's week are there: each Monday, for each product."),
            {"product_id": int, "product_name": str, "period": str, "stats": dict},
            "tickets.tasks.publish_weekly_report",
            (NOTIFICATION_WORKER,),
        ),
        EventType(
            "ticket.created",
            gettext_noop("A ticket was opened."),
            {"ticket_id": int, "title": str, "priority": str, "product_name": str},
            "tickets.tasks.publish_ticket_created",
            (),
        ),
        EventType(
            "ticket.assigned",
            gettext_noop("A ticket has a new assignee, by their own choice or another's."),
            {"ticket_id": int, "title": str, "assignee_id": int, "actor_id": (int, type(None))},
            "tickets.tasks.publish_ticket_assigned",
            (NOTIFICATION_WORKER,),
        ),
        EventType(
            "ticket.status_changed",
            gettext_noop("A ticket has a new status. Being resolved is an event of its own."),
            {
                "ticket_id": int,
                "title": str,
                "old_status": str,
                "new_status": str,
                "actor_id": (int, type(None)),
            },
            "tickets.tasks.publish_ticket_status_changed",
            (NOTIFICATION_WORKER,),
        ),
        EventType(
            "ticket.comment_added",
            gettext_noop("A ticket has a new public comment."),
            {"ticket_id": int, "title": str, "comment_id": int, "author_id": int},
            "tickets.tasks.publish_ticket_comment_added",
            (NOTIFICATION_WORKER,),
        ),
        EventType(
            "ticket.resolved",
            gettext_noop("A ticket was resolved."),
            {"ticket_id": int, "title": str, "actor_id": (int, type(None))},
            "tickets.tasks.publish_ticket_resolved",
            (NOTIFICATION_WORKER,),
        ),
    )
}

WEEKLY_STATS: Mapping[str, type | tuple[type, ...]] = {
    "open_count": int,
    "in_progress_count": int,
    "resolved_count": int,
    "created_last_7d": int,
    "resolved_last_7d": int,
    "avg_resolution_hours": _OPTIONAL_NUMBER,
}
"""The fields of `stats` in `report.weekly_ready`."""


LACKS = gettext_noop("%(type)s lacks %(field)s")
NEEDS = gettext_noop("%(type)s needs %(field)s as %(kinds)s, not %(found)s")
NO_TYPE = gettext_noop("no event type %(type)s in the catalogue")


class BadPayload(ValueError):
    """A payload that is not what the catalogue promises."""


def check(event_type: str, payload: Mapping[str, Any]) -> None:
    """Raise BadPayload when the type is unknown or a field is missing or of another type. More fields are welcome."""
    if event_type not in EVENT_TYPES:
        raise BadPayload(NO_TYPE % {"type": repr(event_type)})
    _check_fields(EVENT_TYPES[event_type].payload, payload, event_type)
    if event_type == "report.weekly_ready":
        _check_fields(WEEKLY_STATS, payload["stats"], f"{event_type} stats")


def _check_fields(fields: Mapping[str, type | tuple[type, ...]], payload: Mapping[str, Any], what: str) -> None:
    for name, expected in fields.items():
        if name not in payload:
            raise BadPayload(LACKS % {"type": what, "field": name})
        value = payload[name]
        if not isinstance(value, expected) or isinstance(value, bool):
            found = _JSON_NAMES.get(type(value), type(value).__name__)
            raise BadPayload(NEEDS % {"type": what, "field": name, "kinds": _named(expected), "found": found})


_JSON_NAMES: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    dict: "object",
    list: "array",
    type(None): "null",
}


def _named(expected: type | tuple[type, ...]) -> str:
    """JSON's words for the types: a value itself may be about a person, and is never told."""
    kinds = expected if isinstance(expected, tuple) else (expected,)
    return " or ".join(_JSON_NAMES[kind] for kind in kinds)

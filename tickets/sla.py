"""When a ticket is due and when it is late. An SLA policy maps a priority to minutes."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from django.utils.functional import Promise

from stega.wording import labels


class Priority(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def label(self) -> str | Promise:
        return labels.PRIORITY[self]


DEFAULT_MINUTES: dict[Priority, int] = {
    Priority.LOW: 72 * 60,
    Priority.MEDIUM: 24 * 60,
    Priority.HIGH: 8 * 60,
    Priority.CRITICAL: 4 * 60,
}


def due_at(created_at: datetime, priority: str, policy: Mapping[Priority, int]) -> datetime:
    return created_at + timedelta(minutes=policy[Priority(priority)])


def is_overdue(due: datetime, now: datetime) -> bool:
    return due <= now


def breached_at_after(new_due: datetime, breached_at: datetime | None, now: datetime) -> datetime | None:
    """A breach is forgotten only when the new deadline still lies ahead."""
    return breached_at if is_overdue(new_due, now) else None


def elapsed_hours(created_at: datetime, now: datetime) -> int:
    return int((now - created_at) / timedelta(hours=1))

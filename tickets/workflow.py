"""Which status may follow which, and what that does to the resolution date."""

from datetime import datetime
from enum import StrEnum

from django.utils.functional import Promise

from stega.wording import labels


class Status(StrEnum):
    OPEN = "open"
    IN_PROGRESS = "in_progress"
    WAITING = "waiting"
    RESOLVED = "resolved"
    CLOSED = "closed"

    @property
    def label(self) -> str | Promise:
        return labels.STATUS[self]


TRANSITIONS: dict[Status, tuple[Status, ...]] = {
    Status.OPEN: (Status.IN_PROGRESS, Status.WAITING, Status.RESOLVED, Status.CLOSED),
    Status.IN_PROGRESS: (Status.OPEN, Status.WAITING, Status.RESOLVED, Status.CLOSED),
    Status.WAITING: (Status.OPEN, Status.IN_PROGRESS, Status.RESOLVED, Status.CLOSED),
    Status.RESOLVED: (Status.OPEN, Status.IN_PROGRESS, Status.CLOSED),
    Status.CLOSED: (Status.OPEN,),
}

RUNNING = (Status.OPEN, Status.IN_PROGRESS)
"""The statuses in which the SLA clock counts."""


def next_statuses(current: str) -> tuple[Status, ...]:
    return TRANSITIONS[Status(current)]


def may_follow(current: str, new: str) -> bool:
    return new in next_statuses(current)


def resolved_at_after(new: str, resolved_at: datetime | None, now: datetime) -> datetime | None:
    """Closing keeps the resolution date, reopening clears it."""
    if new == Status.RESOLVED:
        return now
    return resolved_at if new == Status.CLOSED else None

"""Dead letters as an operator sees them: groups of one cause, and the letters of a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from stega.pgque import oversight

GROUPS_SHOWN = 20
GROUP_COUNT_LIMIT = 1_000
"""Where the counts in the list of groups end: twenty of them cost as much as one that goes on to 10,000."""
NEWEST_GROUPED = 10_000
"""How many dead letters are grouped where the engine has no index for it."""


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What the letters of a group have in common. The cause is a reason without addresses, keys and numbers."""

    queue: str
    consumer: str
    type: str
    cause: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> GroupKey:
        """From an address or a stored target. Raises KeyError when a part is missing."""
        return cls(*(str(values[name]) for name in cls.__slots__))

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Group:
    key: GroupKey
    count: int
    newest_at: datetime
    reason: str
    """That of the newest letter, as the consumer gave it."""


@dataclass(frozen=True, slots=True)
class Groups:
    groups: tuple[Group, ...]
    next: tuple[int, int, str, str] | None
    """Where the next page begins."""
    is_complete: bool
    """Whether all letters were looked at, not the newest alone."""
    count_limit: int


FIRST = (0, 0, "", "")


def groups(after: tuple[int, int, str, str] = FIRST) -> Groups:
    """A page of groups, in the order of queue, consumer, type and cause. Without the index, those of the newest."""
    if not oversight.has_cause_index():
        rows = oversight.newest_dead_letter_groups(NEWEST_GROUPED)
        is_complete = sum(row["count"] for row in rows) < NEWEST_GROUPED
        return Groups(tuple(map(_group, rows)), None, is_complete, NEWEST_GROUPED)
    rows = oversight.dead_letter_groups(after, GROUPS_SHOWN + 1, GROUP_COUNT_LIMIT)
    shown, more = rows[:GROUPS_SHOWN], rows[GROUPS_SHOWN:]
    last = shown[-1] if more else None
    place = (last["dl_queue_id"], last["dl_consumer_id"], last["type"], last["cause"]) if last else None
    return Groups(tuple(map(_group, shown)), place, True, GROUP_COUNT_LIMIT)


def _group(row: Mapping[str, Any]) -> Group:
    key = GroupKey(row["queue_name"], row["consumer_name"], row["type"], row["cause"])
    return Group(key, row["count"], row["newest_at"], row["reason"] or "")


@dataclass(frozen=True, slots=True)
class Letter:
    id: int
    at: datetime
    reason: str
    event_id: int
    event_at: datetime
    deliveries: int
    """How often the consumer had it before it gave up."""
    event_key: str | None


@dataclass(frozen=True, slots=True)
class OpenedLetter:
    letter: Letter
    group: GroupKey
    payload: str | None


NEWEST = 2**63 - 1


def letters(group: GroupKey, before: int, limit: int) -> list[Letter]:
    """Those of the group older than `before` (an id), newest first."""
    return [_letter(row) for row in oversight.dead_letters_of(group.as_dict(), before, limit)]


def opened(id: int) -> OpenedLetter | None:
    row = oversight.dead_letter(id)
    if row is None:
        return None
    key = GroupKey(row["queue_name"], row["consumer_name"], row["type"], row["cause"])
    return OpenedLetter(_letter(row), key, row["ev_data"])


def _letter(row: Mapping[str, Any]) -> Letter:
    return Letter(
        id=row["dl_id"],
        at=row["dl_time"],
        reason=row["dl_reason"] or "",
        event_id=row["ev_id"],
        event_at=row["ev_time"],
        deliveries=(row["ev_retry"] or 0) + 1,
        event_key=row["key"],
    )

"""What an action is done to: which parts name it, and how many rows that is now."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django_q.models import Schedule

from operations import dead_letters
from operations.dead_letters import GroupKey
from operations.models import COUNT_LIMIT, Kind
from operations.records import as_number, is_storable
from stega.models import OutboxEntry
from stega.pgque import oversight


@dataclass(frozen=True, slots=True)
class Extent:
    """How many rows an action would touch, counted up to COUNT_LIMIT, and the newest of them.

    `about` tells what the one row is that a bare number or key stands for, for as long as the record is kept: never
    what is in it.
    """

    count: int
    up_to: int = 0
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of target: its parts and how each is written, the database it lives in, and how it is counted.

    `count` counts nothing newer than the row of the given number; with None everything there is.
    """

    parts: Mapping[str, Callable[[str], str]]
    alias: str
    count: Callable[[Mapping[str, str], int | None], Extent]

    def named(self, values: Mapping[str, Any]) -> dict[str, str]:
        """The parts among the values, each in its only spelling: targets compare equal as text, in a constraint, in an
        address. Raises ValueError when one is missing or cannot name anything.
        """
        if missing := [part for part in self.parts if part not in values]:
            raise ValueError(f"The target lacks {missing[0]}.")
        return {part: spell(str(values[part])) for part, spell in self.parts.items()}


def _number(text: str) -> str:
    """A row's number as digits alone; what int() takes beside them names nothing."""
    if (number := as_number(text)) is None:
        raise ValueError(f"{text[:20]!r} is no row's number.")
    return str(number)


def _key(text: str) -> str:
    return str(uuid.UUID(text))


def _name(text: str) -> str:
    """Any text that a database could hold."""
    if not is_storable(text):
        raise ValueError("No row has such a name.")
    return text


def _count_letter(target: Mapping[str, str], up_to: int | None) -> Extent:
    id = int(target["id"])
    letter = dead_letters.opened(id)
    return Extent(1, id, letter.group.as_dict()) if letter else Extent(0, id)


def _count_group(target: Mapping[str, str], up_to: int | None) -> Extent:
    group = GroupKey.of(target).as_dict()
    newest = up_to or oversight.last_dead_letter(group)
    return Extent(oversight.count_dead_letters(group, newest, COUNT_LIMIT) if newest else 0, newest)


def _count_entry(target: Mapping[str, str], up_to: int | None) -> Extent:
    entry = OutboxEntry.objects.given_up().filter(key=uuid.UUID(target["key"])).first()
    return Extent(1, about={"task": entry.task}) if entry else Extent(0)


def _count_entries(target: Mapping[str, str], up_to: int | None) -> Extent:
    entries = OutboxEntry.objects.given_up()
    newest = up_to or entries.order_by("-pk").values_list("pk", flat=True).first() or 0
    return Extent(entries.filter(pk__lte=newest)[:COUNT_LIMIT].count(), newest)


def _count_schedule(target: Mapping[str, str], up_to: int | None) -> Extent:
    return Extent(Schedule.objects.filter(name=target["name"])[:1].count())


_LETTER = Target({"id": _number}, "events", _count_letter)
_GROUP = Target(dict.fromkeys(("queue", "consumer", "type", "cause"), _name), "events", _count_group)
_ENTRY = Target({"key": _key}, "default", _count_entry)
_ENTRIES = Target({}, "default", _count_entries)

TARGETS: Mapping[Kind, Target] = {
    Kind.REPLAY_LETTER: _LETTER,
    Kind.REPLAY_GROUP: _GROUP,
    Kind.PURGE_LETTER: _LETTER,
    Kind.PURGE_GROUP: _GROUP,
    Kind.RETRY_ENTRY: _ENTRY,
    Kind.RETRY_ENTRIES: _ENTRIES,
    Kind.SETTLE_ENTRY: _ENTRY,
    Kind.SETTLE_ENTRIES: _ENTRIES,
    Kind.RUN_SCHEDULE: Target({"name": _name}, "jobs", _count_schedule),
}

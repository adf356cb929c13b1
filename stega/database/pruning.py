"""Work on more rows than one statement can take: old ones are deleted piece by piece, however many there are."""

import time
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet

PIECE = 2_000
"""Rows of one piece: some tenths of a second each, so that nobody waits long for a lock."""


def delete(rows: QuerySet[Any], by: str) -> int:
    """Delete the rows in the order of the indexed field `by`, each piece in a transaction of its own; how many.

    Ends after TASK_STEP_SECONDS, whatever is left: the next run goes on. Any number may run; a row that has left
    `rows` meanwhile stays.
    """
    found = pieces(rows, by, until=deadline())
    return sum(rows.filter(pk__in=[row.pk for row in piece]).delete()[0] for piece in found)


def deadline() -> float:
    """When a run that begins now is to end, by the monotonic clock: one for all that it does."""
    seconds: float = settings.TASK_STEP_SECONDS
    return time.monotonic() + seconds


def pieces(rows: QuerySet[Any], by: str, *fields: str, until: float) -> Iterator[list[Any]]:
    """The rows in the order of `by`, PIECE at a time, each with its pk and these fields; until the deadline.

    One piece there is always, so that slow runs get on too.
    """
    rows = rows.order_by(by, "pk").values_list("pk", by, *fields, named=True)
    piece = list(rows[:PIECE])
    while piece:
        yield piece
        is_last = len(piece) < PIECE or time.monotonic() > until
        piece = [] if is_last else list(_after(rows, by, piece[-1])[:PIECE])


def _after(rows: QuerySet[Any], by: str, row: Any) -> QuerySet[Any]:
    """Said twice, since PostgreSQL finds its place in an index by the first alone."""
    value = getattr(row, by)
    return rows.filter(Q(**{f"{by}__gte": value}), Q(**{f"{by}__gt": value}) | Q(pk__gt=row.pk))

"""What others left undone, as the event log's tables tell it: rotation held up by a consumer, members gone for good."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

Row = Mapping[str, Any]


def rotation_blockers(queues: Iterable[Row], consumers: Iterable[Row], grace: timedelta) -> dict[str, list[str]]:
    """Queues whose rotation is overdue by more than `grace`, each with the consumers that have not passed the last one.

    Without any such consumer the list is empty: an old transaction on the server is what rotation waits for.
    """
    overdue = {
        row["queue_name"]: row["switch_age"]
        for row in queues
        if row["queue_rotation_period"] and row["switch_age"] > row["queue_rotation_period"] + grace
    }
    blockers: dict[str, list[str]] = {queue: [] for queue in overdue}
    for row in consumers:
        queue, lag = row["queue_name"], row["lag"]
        if queue in overdue and lag is not None and lag > overdue[queue]:
            blockers[queue].append(row["consumer_name"])
    return blockers


def silent_members(consumers: Iterable[Row], silence: timedelta) -> list[tuple[str, str, str]]:
    """Members (queue, group, name) without a sign of life for so long: their processes are gone.

    The engine joins group and member by a dot, and neither may contain one; other consumers with a dot in their name
    are no members, and leaving a group does nothing to them.
    """
    return [
        (row["queue_name"], *row["consumer_name"].split("."))
        for row in consumers
        if row["consumer_name"].count(".") == 1 and row["last_seen"] > silence
    ]

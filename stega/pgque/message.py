"""The message: an event as a handler is given it, and what a handler may say of one that it did not handle."""

import json
import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext_noop

from stega.pgque import catalogue, client
from stega.pgque.publishing import event_key

BAD_PAYLOAD = gettext_noop("bad payload: %(fault)s")
NO_OBJECT = gettext_noop("the payload is no JSON object")
TOO_LARGE = gettext_noop("a number is too large")
NO_JSON = gettext_noop("%(name)s is no JSON value")

MOST_DEATHS = 3
"""How many processes may die of one message; then it is a dead letter, and its neighbours go on."""

RETRY_BASE_SECONDS = 2.0
RETRY_CAP_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Message:
    """An event as a handler sees it."""

    id: int
    batch_id: int
    type: str
    payload: dict[str, Any]
    key: uuid.UUID
    """What makes telling somebody twice impossible: the outbox key, or one from the number of an event without."""
    attempt: int
    created_at: datetime
    is_last: bool = False
    """Whether it does not come again when it fails by a fault."""


Handler = Callable[[Message], None]


class RetryLater(Exception):
    """A handler's word for a temporary failure: the message comes again, after `seconds` or a growing pause.

    Each time counts towards the dead letters unless `counted` is False: such a handler ends its waiting itself.
    """

    def __init__(self, reason: str, seconds: float | None = None, *, counted: bool = True) -> None:
        super().__init__(reason)
        self.seconds = seconds
        self.counted = counted


class Rejected(Exception):
    """A handler's word for a permanent failure: the message goes to the dead letters at once, with this reason."""


def retry_delay(attempt: int, jitter: float) -> timedelta:
    """Exponential back-off with full jitter (0 <= jitter <= 1), at least 1 s, at most 1 h."""
    ceiling = min(RETRY_CAP_SECONDS, RETRY_BASE_SECONDS * 2.0 ** min(attempt, 20))
    return timedelta(seconds=max(1.0, jitter * ceiling))


def key_of(event: client.Event) -> uuid.UUID:
    return uuid.UUID(event.extra1) if event.extra1 else event_key(event.type, "event", event.id)


def message_of(event: client.Event, batch_id: int, *, is_last: bool = False) -> Message:
    """The event for a handler; raises Rejected when its payload is not what the catalogue promises."""
    try:
        payload = json.loads(event.data or "null", parse_constant=_refuse_constant, parse_float=_finite)
        if not isinstance(payload, dict):
            raise ValueError(NO_OBJECT)
        catalogue.check(event.type, payload)
        key = key_of(event)
    except (ValueError, RecursionError) as error:
        raise Rejected(BAD_PAYLOAD % {"fault": error}) from None
    return Message(event.id, batch_id, event.type, payload, key, event.retry_count + 1, event.created_at, is_last)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(TOO_LARGE)
    return number


def _refuse_constant(name: str) -> None:
    raise ValueError(NO_JSON % {"name": name})

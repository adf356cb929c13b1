"""Publishing: the task worker's way to put an event on the queue."""

import logging
import uuid
from typing import Any

from django.conf import settings

from stega import logs
from stega.pgque import catalogue, client

logger = logging.getLogger(__name__)

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:stega:event")


def event_key(event_type: str, *parts: object) -> uuid.UUID:
    """The key of a fact, the same whenever it is asked for: the same fact can only be told once."""
    return uuid.uuid5(_NAMESPACE, "\x1f".join([event_type, *map(str, parts)]))


def publish(event_type: str, payload: dict[str, Any], key: uuid.UUID) -> int:
    """Append the event to the queue and return its id. Only tasks publish: a request must never wait for `events`.

    Commits on its own. Publishing again after a crash appends a second event with the same key, which the delivery
    ledger tells nobody again. Raises BadPayload; OperationalError while `events` is away (the task then stays queued).
    """
    catalogue.check(event_type, payload)
    event_id = client.insert_event(settings.PGQUE_QUEUE, event_type, payload, str(key))
    with logs.about(event_key=key, event_id=event_id):
        logger.info("Published %s", event_type)
    return event_id

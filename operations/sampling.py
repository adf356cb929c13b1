"""A sample of each minute: how many events, how far consumers are behind, what became of the notices."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Count

from notifications.models import Delivery, State
from operations.models import Sample
from stega.database import clock
from stega.database.outages import is_outage
from stega.pgque import oversight

MINUTE = timedelta(minutes=1)

EVENTS = "events:"
"""Before the name of a queue: a count that grows. Charts take the difference of two minutes."""
LAG = "lag:"
"""Before the name of a consumer: its lag, the seconds that the first tick after its cursor has waited, or 0."""
DELIVERIES = "deliveries:"
"""Before told, waiting, failed: the notices that arose in the minute before, as they are now."""

_FATE: Mapping[str, str] = {
    State.SENT: "told",
    State.PENDING: "waiting",
    State.SENDING: "waiting",
    State.FAILED: "failed",
    State.GIVEN_UP: "failed",
}


def take(now: datetime | None = None) -> dict[str, int]:
    """Sample this minute; run by a schedule each minute, by any number of clusters at once: one of them writes it.

    While `events` is away the rest is sampled all the same, and its charts show a gap.
    """
    at = (now or clock.now()).replace(second=0, microsecond=0)
    values = deliveries(at)
    try:
        values |= events()
    except Exception as error:
        if not is_outage(error):
            raise
    return {"sampled": Sample.objects.take(at, values)}


def events() -> dict[str, float]:
    counts = {f"{EVENTS}{queue}": float(count) for queue, count in oversight.event_counts().items()}
    lags = {
        f"{LAG}{row['consumer_name']}": row["waiting"].total_seconds() if row["waiting"] else 0.0
        for row in oversight.consumer_places()
        if row["role"] != "coop_member"
    }
    return counts | lags


def deliveries(at: datetime) -> dict[str, float]:
    """Of the minute before `at`, by the index on `created_at`."""
    of_minute = Delivery.objects.filter(created_at__gte=at - MINUTE, created_at__lt=at).order_by()
    fates: Counter[str | None] = Counter()
    for state, count in of_minute.values_list("state").annotate(Count("pk")):
        fates[_FATE.get(state)] += count
    return {f"{DELIVERIES}{fate}": float(fates[fate]) for fate in ("told", "waiting", "failed")}

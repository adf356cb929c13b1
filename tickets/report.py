"""The figures of the weekly activity report."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Avg, Count, F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from tickets.models import Product
from tickets.workflow import Status

PERIOD = timedelta(days=7)


@dataclass(frozen=True)
class Stats:
    open_count: int
    in_progress_count: int
    resolved_count: int
    created_last_7d: int
    resolved_last_7d: int
    avg_resolution_hours: float | None


@dataclass(frozen=True)
class Report:
    product_id: int
    product_name: str
    week: str
    stats: Stats

    def payload(self) -> dict[str, Any]:
        return {
            "product_id": self.product_id,
            "product_name": self.product_name,
            "period": "7d",
            "stats": asdict(self.stats),
        }


def weekly(products: QuerySet[Product]) -> list[Report]:
    """One report per product, in one statement, by the clock of the database.

    The counts by status are of this moment; "last 7 days" are the seven days before it, and the average resolution
    time is that of the tickets resolved in them.
    """
    since = Now() - PERIOD
    created = Q(tickets__created_at__gt=since, tickets__created_at__lte=Now())
    resolved = Q(tickets__resolved_at__gt=since, tickets__resolved_at__lte=Now())
    rows = products.order_by("pk").annotate(
        open_count=_count(Q(tickets__status=Status.OPEN.value)),
        in_progress_count=_count(Q(tickets__status=Status.IN_PROGRESS.value)),
        resolved_count=_count(Q(tickets__status=Status.RESOLVED.value)),
        created_last_7d=_count(created),
        resolved_last_7d=_count(resolved),
        resolution=Avg(F("tickets__resolved_at") - F("tickets__created_at"), filter=resolved),
        moment=Now(),
    )
    return [_report(row) for row in rows]


def iso_week(moment: Any) -> str:
    """The ISO week of the site's calendar, such as 2026-W07: reports of one week share it."""
    year, week, _day = timezone.localtime(moment, timezone.get_default_timezone()).isocalendar()
    return f"{year}-W{week:02}"


def _count(condition: Q) -> Count:
    return Count("tickets", filter=condition)


def _report(row: Any) -> Report:
    hours = None if row.resolution is None else round(row.resolution / timedelta(hours=1), 1)
    stats = Stats(
        open_count=row.open_count,
        in_progress_count=row.in_progress_count,
        resolved_count=row.resolved_count,
        created_last_7d=row.created_last_7d,
        resolved_last_7d=row.resolved_last_7d,
        avg_resolution_hours=hours,
    )
    return Report(product_id=row.pk, product_name=row.name, week=iso_week(row.moment), stats=stats)

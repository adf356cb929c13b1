"""The charts of the overview, from the samples of the last hour or day."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from operations.charts import Chart, Point, Series, condensed, line_chart, rates, with_gaps
from operations.facts.reading import Question
from operations.models import Sample
from operations.sampling import DELIVERIES, EVENTS, LAG

SPANS: Mapping[str, timedelta] = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
WIDTHS: Mapping[str, timedelta] = {"hour": timedelta(minutes=1), "day": timedelta(minutes=10)}
"""The stretch of time that one point stands for. A line is broken where two of them have no sample."""


PER_SECOND: Mapping[str, Callable[[], str]] = {
    "hour": lambda: _("events per second, the mean of each minute"),
    "day": lambda: _("events per second, the mean of each 10 minutes"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    title: str
    unit: str
    chart: Chart


Points = Mapping[str, list[tuple[datetime, float]]]
"""Series -> its samples in their order."""


def question(span: str, now: datetime) -> Question[Points]:
    """The samples of the last hour or day."""
    start = now - SPANS[span] - timedelta(minutes=1)
    return Question("default", lambda: _points(Sample.objects.since(start, (EVENTS, LAG, DELIVERIES))))


def figures(points: Points, span: str, now: datetime) -> list[Figure]:
    """Rate, lag and notices."""
    start = now - SPANS[span]
    width = WIDTHS[span]
    rate = [_series(name, rates(values), width, fmean) for name, values in _named(points, EVENTS)]
    lag = [_series(name, values, width, max) for name, values in _named(points, LAG)]
    fates = {"told": _("told"), "waiting": _("waiting"), "failed": _("failures")}
    notices = [_series(label, points.get(f"{DELIVERIES}{fate}", []), width, fmean) for fate, label in fates.items()]
    return [
        _figure("rate", _("Rate"), PER_SECOND[span](), rate, start, now),
        _figure("lag", _("Lag"), _("seconds that events wait for a consumer"), lag, start, now),
        _figure("notices", _("Notices"), _("mails and posts per minute"), notices, start, now),
    ]


def _figure(id: str, title: str, unit: str, series: list[Series], start: datetime, end: datetime) -> Figure:
    return Figure(title, unit, line_chart(f"chart-{id}", title, unit, series, start, end))


def _points(samples: QuerySet[Sample]) -> Points:
    points: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
    for series, at, value in samples.values_list("series", "at", "value"):
        points[series].append((at, value))
    return points


def _named(points: Points, prefix: str) -> Iterable[tuple[str, list[tuple[datetime, float]]]]:
    for series in sorted(points):
        if series.startswith(prefix):
            yield series.removeprefix(prefix), points[series]


def _series(label: str, points: Iterable[Point], width: timedelta, take: Callable[[Iterable[float]], float]) -> Series:
    return Series(label, with_gaps(condensed(points, width, take), width * 2.5))

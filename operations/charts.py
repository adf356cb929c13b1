"""Charts as SVG: pure, from points to a picture, with the same figures as words for who cannot see it.

A chart has no text of its own inside the picture, which is stretched to whatever width the page has: scales and labels
are given beside it. Colours come from the style sheet by class.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 600.0, 120.0
LINES = 4
"""Classes line-1 to line-4; a fifth series has the colour of the first."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Point = tuple[datetime, float | None]
"""None where nothing is known: the line has a gap."""


@dataclass(frozen=True, slots=True)
class Series:
    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table that says the same as the picture."""

    at: datetime
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    svg: str
    top: float
    """The value at the upper edge; the lower is 0."""
    start: datetime
    end: datetime
    labels: tuple[tuple[int, str, float | None], ...]
    """Number of its colour, name and last value of every series."""
    rows: tuple[Row, ...]
    is_empty: bool

    @property
    def middle(self) -> datetime:
        return self.start + (self.end - self.start) / 2


def line_chart(
    id: str, title: str, description: str, series: Sequence[Series], start: datetime, end: datetime, *, rows: int = 12
) -> Chart:
    """A line for each series between `start` and `end`; the table has about `rows` lines."""
    top = nice_top(value for each in series for _at, value in each.points if value is not None)
    shapes = "".join(_shape(number, each, top, start, end) for number, each in enumerate(series))
    svg = (
        f'<svg class="plot" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" role="img" '
        f'aria-labelledby="{id}-title {id}-desc">'
        f'<title id="{id}-title">{escape(title)}</title><desc id="{id}-desc">{escape(description)}</desc>'
        f"{_grid()}{shapes}</svg>"
    )
    labels = tuple((number % LINES + 1, each.label, _last(each)) for number, each in enumerate(series))
    is_empty = not any(value is not None for each in series for _at, value in each.points)
    return Chart(svg, top, start, end, labels, _rows(series, start, end, rows), is_empty)


def nice_top(values: Iterable[float]) -> float:
    """The smallest of 1, 2, 5, 10, 20, 50, ... that no value exceeds."""
    largest = max(values, default=0.0)
    if largest <= 1:
        return 1.0
    magnitude = 10.0 ** math.floor(math.log10(largest))
    return next(step * magnitude for step in (1.0, 2.0, 5.0, 10.0) if largest <= step * magnitude * (1 + 1e-9))


def rates(points: Iterable[tuple[datetime, float]]) -> tuple[Point, ...]:
    """What a growing count gains per second from one point to the next; unknown where it was set back."""
    result: list[Point] = []
    last: tuple[datetime, float] | None = None
    for at, value in points:
        if last is not None and at > last[0]:
            gain = value - last[1]
            result.append((at, gain / (at - last[0]).total_seconds() if gain >= 0 else None))
        last = (at, value)
    return tuple(result)


def with_gaps(points: Sequence[Point], longest: timedelta) -> tuple[Point, ...]:
    """The points with an unknown one between two that are further apart than `longest`."""
    result: list[Point] = []
    for at, value in points:
        if result and at - result[-1][0] > longest:
            result.append((result[-1][0] + longest, None))
        result.append((at, value))
    return tuple(result)


def condensed(points: Iterable[Point], width: timedelta, take: Callable[[list[float]], float]) -> tuple[Point, ...]:
    """One point for each stretch of `width`, at its end: what `take` makes of its values, unknown where it has none."""

    def end(at: datetime) -> datetime:
        return EPOCH + -(-(at - EPOCH) // width) * width

    stretches = groupby(points, lambda point: end(point[0]))
    known = ((at, [value for _at, value in stretch if value is not None]) for at, stretch in stretches)
    return tuple((at, take(values) if values else None) for at, values in known)


def _shape(number: int, series: Series, top: float, start: datetime, end: datetime) -> str:
    colour = number % LINES + 1
    lines = [_path(run, top, start, end) for run in _runs(series.points)]
    area = "".join(f'<path class="area-{colour}" d="{area}"/>' for _line, area in lines if number == 0)
    return area + "".join(f'<path class="line-{colour}" d="{line}"/>' for line, _area in lines)


def _runs(points: Iterable[Point]) -> Iterable[list[tuple[datetime, float]]]:
    for is_known, run in groupby(points, lambda point: point[1] is not None):
        if is_known:
            yield [(at, value) for at, value in run if value is not None]


def _path(run: Sequence[tuple[datetime, float]], top: float, start: datetime, end: datetime) -> tuple[str, str]:
    """The line, and the area under it. A lonely point becomes a short dash."""
    span = (end - start).total_seconds()
    places = [((at - start).total_seconds() / span * WIDTH, HEIGHT * (1 - value / top)) for at, value in run]
    if len(places) == 1:
        places.append((places[0][0] + 2, places[0][1]))
    line = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return line, f"{line}L{places[-1][0]:.1f},{HEIGHT:g}L{places[0][0]:.1f},{HEIGHT:g}Z"


def _grid() -> str:
    heights = (0.5, HEIGHT / 2, HEIGHT - 0.5)
    return "".join(f'<path class="grid" d="M0,{y:g}H{WIDTH:g}"/>' for y in heights)


def _last(series: Series) -> float | None:
    return series.points[-1][1] if series.points else None


def _rows(series: Sequence[Series], start: datetime, end: datetime, count: int) -> tuple[Row, ...]:
    """The highest value of each series in each part of the time, the newest part first."""
    step = (end - start) / count
    parts = [(start + step * number, start + step * (number + 1)) for number in range(count)]
    found = [Row(after, tuple(_highest(each, before, after) for each in series)) for before, after in reversed(parts)]
    return tuple(row for row in found if any(value is not None for value in row.values))


def _highest(series: Series, before: datetime, after: datetime) -> float | None:
    return max((value for at, value in series.points if value is not None and before < at <= after), default=None)

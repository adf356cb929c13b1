"""operations/charts.py: pictures that say what their figures say."""

import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime, timedelta

import pytest

from operations.charts import Series, condensed, line_chart, nice_top, rates, with_gaps

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
END = START + timedelta(hours=1)


def at(minutes):
    return START + timedelta(minutes=minutes)


def chart(*series):
    return line_chart("lag", "Lag <of> workers", "in seconds", series, START, END)


@pytest.mark.parametrize(
    ("values", "top"),
    [
        ([], 1),
        ([0], 1),
        ([0.3], 1),
        ([1], 1),
        ([1.1], 2),
        ([3], 5),
        ([5], 5),
        ([7], 10),
        ([10], 10),
        ([11], 20),
        ([480], 500),
    ],
)
def test_the_scale_ends_at_a_round_number(values, top):
    assert nice_top(values) == top


def test_the_picture_is_well_formed_and_named_for_who_cannot_see_it():
    svg = ElementTree.fromstring(chart(Series("a", ((at(0), 1.0), (at(30), 2.0)))).svg)

    assert svg.get("role") == "img"
    assert svg.get("aria-labelledby") == "lag-title lag-desc"
    assert svg.findtext("title") == "Lag <of> workers"
    assert svg.findtext("desc") == "in seconds"


def test_a_line_goes_from_edge_to_edge_and_from_bottom_to_top():
    drawn = chart(Series("a", ((at(0), 0.0), (at(30), 5.0), (at(60), 10.0))))

    assert 'class="line-1" d="M0.0,120.0L300.0,60.0L600.0,0.0"' in drawn.svg


def test_a_gap_breaks_the_line():
    drawn = chart(Series("a", ((at(0), 1.0), (at(1), 1.0), (at(2), None), (at(30), 1.0), (at(31), 1.0))))

    assert drawn.svg.count('class="line-1"') == 2


def test_each_series_has_a_colour_of_its_own_and_its_last_value():
    drawn = chart(Series("a", ((at(0), 1.0),)), Series("b", ((at(0), 2.0), (at(5), 4.0))))

    assert drawn.labels == ((1, "a", 1.0), (2, "b", 4.0))


def test_the_table_tells_the_highest_value_of_each_part_the_newest_first():
    drawn = chart(Series("a", ((at(1), 1.0), (at(4), 3.0), (at(59), 2.0))))

    assert [(row.at, row.values) for row in drawn.rows] == [(at(60), (2.0,)), (at(5), (3.0,))]


def test_a_chart_without_a_single_value_says_so():
    assert chart(Series("a", ())).is_empty
    assert not chart(Series("a", ((at(0), 0.0),))).is_empty


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([], []), ([0], []), ([0, 60], [1.0]), ([0, 60, 60], [1.0, 0.0]), ([60, 0, 30], [None, 0.5])],
)
def test_a_growing_count_becomes_a_rate_unless_it_was_set_back(counts, expected):
    points = [(at(number), float(count)) for number, count in enumerate(counts)]

    assert [value for _at, value in rates(points)] == expected


def test_points_far_apart_have_an_unknown_one_between_them():
    points = with_gaps([(at(0), 1.0), (at(1), 1.0), (at(9), 1.0)], timedelta(minutes=2))

    assert [value for _at, value in points] == [1.0, 1.0, None, 1.0]


def test_a_stretch_of_time_becomes_one_point_at_its_end():
    points = [(at(1), 1.0), (at(9), 3.0), (at(10), 2.0), (at(11), 5.0), (at(25), None)]

    assert condensed(points, timedelta(minutes=10), max) == ((at(10), 3.0), (at(20), 5.0), (at(30), None))

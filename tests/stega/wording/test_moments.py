from datetime import UTC, datetime, timedelta

import pytest
from django.utils import translation

from stega.wording import moments

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("distance", "text"),
    [
        (timedelta(seconds=20), "in less than 1 min"),
        (timedelta(minutes=59, seconds=59), "in 59 min"),
        (timedelta(hours=3, minutes=59), "in 3 h"),
        (timedelta(hours=47), "in 47 h"),
        (timedelta(days=3), "in 3 d"),
        (timedelta(), "overdue by less than 1 min"),
        (timedelta(hours=-5), "overdue by 5 h"),
    ],
)
def test_a_deadline_is_said_in_its_largest_unit(distance, text):
    assert moments.until(NOW + distance, NOW) == text


@pytest.mark.parametrize(("age", "text"), [(timedelta(seconds=5), "just now"), (timedelta(hours=2), "2 h ago")])
def test_a_past_moment_is_said_as_its_age(age, text):
    assert moments.ago(NOW - age, NOW) == text


@pytest.mark.parametrize(("minutes", "text"), [(1, "1 min"), (90, "90 min"), (240, "4 h")])
def test_minutes_are_hours_where_they_are_whole_hours(minutes, text):
    assert moments.minutes(minutes) == text


def test_a_deadline_is_said_in_the_language_of_the_reader():
    with translation.override("pt-br"):
        assert moments.until(NOW - timedelta(hours=5), NOW) == "atrasado há 5 h"

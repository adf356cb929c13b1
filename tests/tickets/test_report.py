from datetime import UTC, datetime

import pytest

from tickets.report import iso_week


@pytest.mark.parametrize(
    ("time_zone", "week"),
    [("UTC", "2026-W10"), ("Asia/Tokyo", "2026-W11"), ("America/Sao_Paulo", "2026-W10")],
)
def test_the_week_is_that_of_the_calendar_of_the_site(settings, time_zone, week):
    settings.TIME_ZONE = time_zone

    assert iso_week(datetime(2026, 3, 8, 20, tzinfo=UTC)) == week


def test_the_first_days_of_january_may_belong_to_the_week_before():
    assert iso_week(datetime(2027, 1, 2, 12, tzinfo=UTC)) == "2026-W53"

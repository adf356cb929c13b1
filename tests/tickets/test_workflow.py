from datetime import UTC, datetime

import pytest

from tickets.workflow import TRANSITIONS, Status, may_follow, resolved_at_after

EARLIER = datetime(2026, 3, 1, 9, tzinfo=UTC)
NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_every_status_has_its_row():
    assert set(TRANSITIONS) == set(Status)


@pytest.mark.parametrize(
    ("current", "new", "allowed"),
    [
        ("open", "in_progress", True),
        ("open", "closed", True),
        ("in_progress", "waiting", True),
        ("waiting", "in_progress", True),
        ("resolved", "closed", True),
        ("resolved", "open", True),
        ("resolved", "waiting", False),
        ("closed", "open", True),
        ("closed", "in_progress", False),
        ("closed", "resolved", False),
    ],
)
def test_the_table_says_which_status_may_follow(current, new, allowed):
    assert may_follow(current, new) is allowed


@pytest.mark.parametrize("status", Status)
def test_no_status_follows_itself(status):
    assert not may_follow(status, status)


@pytest.mark.parametrize(
    ("new", "resolved_at", "expected"),
    [
        ("resolved", None, NOW),
        ("closed", EARLIER, EARLIER),
        ("closed", None, None),
        ("open", EARLIER, None),
        ("in_progress", EARLIER, None),
    ],
)
def test_closing_keeps_the_resolution_date_and_reopening_clears_it(new, resolved_at, expected):
    assert resolved_at_after(new, resolved_at, NOW) == expected

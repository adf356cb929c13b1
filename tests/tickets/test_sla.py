from datetime import UTC, datetime, timedelta

import pytest

from tickets.sla import DEFAULT_MINUTES, Priority, breached_at_after, due_at, elapsed_hours, is_overdue

OPENED = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(("priority", "hours"), [("critical", 4), ("high", 8), ("medium", 24), ("low", 72)])
def test_the_deadline_follows_from_opening_and_priority(priority, hours):
    assert due_at(OPENED, priority, DEFAULT_MINUTES) == OPENED + timedelta(hours=hours)


def test_a_policy_may_count_in_minutes():
    assert due_at(OPENED, "critical", {**DEFAULT_MINUTES, Priority.CRITICAL: 1}) == OPENED + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("now", "overdue"),
    [
        (OPENED - timedelta(microseconds=1), False),
        (OPENED, True),
        (OPENED + timedelta(days=1), True),
    ],
)
def test_a_ticket_is_overdue_from_its_deadline_on(now, overdue):
    assert is_overdue(OPENED, now) is overdue


@pytest.mark.parametrize(
    ("new_due", "breached_at", "expected"),
    [
        (OPENED + timedelta(hours=2), OPENED, None),
        (OPENED - timedelta(hours=2), OPENED, OPENED),
        (OPENED - timedelta(hours=2), None, None),
    ],
)
def test_a_breach_is_forgotten_only_when_the_new_deadline_lies_ahead(new_due, breached_at, expected):
    assert breached_at_after(new_due, breached_at, now=OPENED) == expected


@pytest.mark.parametrize(("minutes", "hours"), [(1, 0), (59, 0), (60, 1), (299, 4)])
def test_elapsed_hours_are_whole_hours(minutes, hours):
    assert elapsed_hours(OPENED, OPENED + timedelta(minutes=minutes)) == hours

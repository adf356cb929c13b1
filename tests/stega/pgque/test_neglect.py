"""stega/pgque/neglect.py: who holds up rotation, and who is gone."""

from datetime import timedelta

import pytest

from stega.pgque.neglect import rotation_blockers, silent_members

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def queue(switch_age, period=HOUR):
    return {"queue_name": "q", "switch_age": switch_age, "queue_rotation_period": period}


def consumer(name, lag=timedelta(0), last_seen=timedelta(0)):
    return {"queue_name": "q", "consumer_name": name, "lag": lag, "last_seen": last_seen}


@pytest.mark.parametrize(
    ("switch_age", "period", "lags", "blockers"),
    [
        (HOUR / 2, HOUR, {"slow": 3 * HOUR}, {}),  # not due yet
        (HOUR, HOUR, {"slow": 3 * HOUR}, {}),  # within the grace
        (2 * HOUR, HOUR, {"slow": 3 * HOUR, "quick": MINUTE, "idle member": None}, {"q": ["slow"]}),
        (2 * HOUR, HOUR, {"quick": MINUTE}, {"q": []}),  # nobody to blame: an old transaction
        (9 * HOUR, None, {"slow": 9 * HOUR}, {}),  # never rotates
    ],
)
def test_overdue_rotation_is_blamed_on_consumers_that_lag_behind_the_last_one(switch_age, period, lags, blockers):
    consumers = [consumer(name, lag) for name, lag in lags.items()]

    assert rotation_blockers([queue(switch_age, period)], consumers, MINUTE) == blockers


@pytest.mark.parametrize(
    ("name", "last_seen", "found"),
    [
        ("group.member", 2 * HOUR, [("q", "group", "member")]),
        ("group.member", MINUTE, []),
        ("group", 2 * HOUR, []),
        ("some.consumer.of.others", 2 * HOUR, []),
    ],
)
def test_members_are_gone_after_a_long_silence(name, last_seen, found):
    assert silent_members([consumer(name, last_seen=last_seen)], HOUR) == found

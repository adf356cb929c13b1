"""operations/facts/queues.py: what may be silent because it has nothing to do."""

from dataclasses import replace

import pytest

from tests.operations.facts_of import GROUP, HOUR, MEMBER, QUEUE, SECOND, WORKER


@pytest.mark.parametrize(
    ("is_idle", "changes"),
    [
        (True, {"ticker_lag": 18 * SECOND}),
        (True, {"ticker_lag": 60 * SECOND}),
        (False, {"ticker_lag": 70 * SECOND}),
        (False, {"ticker_lag": None}),
        (False, {"ticker_lag": SECOND, "events_after_tick": 1}),
        (False, {"ticker_lag": SECOND, "is_paused": True}),
    ],
)
def test_a_queue_is_idle_when_nothing_waits_for_a_tick_that_may_be_so_late(is_idle, changes):
    assert replace(QUEUE, **changes).is_idle is is_idle


@pytest.mark.parametrize("consumer", [WORKER, GROUP, MEMBER], ids=["plain", "group", "member"])
@pytest.mark.parametrize(
    ("is_idle", "changes"),
    [
        (True, {"last_seen": 19 * SECOND}),
        (False, {"last_seen": HOUR}),
        (False, {"pending": 3}),
        (False, {"unticked": 1}),
        (False, {"open_batch": 7}),
        (False, {"sessions": ()}),
    ],
)
def test_a_consumer_is_idle_when_it_is_there_and_has_nothing_to_do(consumer, is_idle, changes):
    assert replace(consumer, **changes).is_idle is is_idle

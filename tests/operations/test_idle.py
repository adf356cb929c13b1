"""operations/facts/queues.py: what may be silent because it has nothing to do, and what is silent as it is gone."""

from dataclasses import replace

import pytest

from operations.facts.queues import with_missing_members
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


@pytest.mark.parametrize("consumer", [WORKER, GROUP], ids=["plain", "group"])
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


@pytest.mark.parametrize(
    ("is_idle", "changes"),
    [
        (True, {"last_seen": SECOND}),
        (False, {"last_seen": 43 * SECOND}),
        (False, {"pending": 3}),
        (False, {"open_batch": 7}),
    ],
)
def test_a_member_is_idle_as_long_as_it_asks_for_a_batch_at_each_poll(is_idle, changes):
    assert replace(MEMBER, **changes).is_idle is is_idle


(OF_GROUP,) = GROUP.sessions


@pytest.mark.parametrize(
    ("sessions", "last_seen", "gone"),
    [
        ((OF_GROUP,), {"a": SECOND, "b": 43 * SECOND}, {"b"}),
        ((OF_GROUP,), {"a": 43 * SECOND, "b": HOUR}, {"b"}),
        ((OF_GROUP, OF_GROUP), {"a": SECOND, "b": 43 * SECOND}, set()),
        ((OF_GROUP,), {"a": SECOND, "b": 2 * SECOND}, set()),
        ((), {"a": 43 * SECOND, "b": HOUR}, {"a", "b"}),
        (None, {"a": SECOND, "b": HOUR}, set()),
    ],
    ids=["one of two", "the more silent one", "each has a session", "just connecting", "all", "hidden sessions"],
)
def test_of_more_members_than_sessions_the_silent_ones_are_gone(sessions, last_seen, gone):
    members = [replace(MEMBER, member=name, last_seen=silence) for name, silence in last_seen.items()]

    told = with_missing_members([replace(GROUP, sessions=sessions), *members])

    assert {each.member for each in told if each.is_gone} == gone


def test_of_a_group_of_other_programs_nobody_knows_who_is_gone():
    group = replace(GROUP, name="workers", sessions=())

    _group, member = with_missing_members([group, replace(MEMBER, name="workers", last_seen=HOUR)])

    assert not member.is_gone


@pytest.mark.parametrize(
    ("is_missed", "of_group", "of_member"),
    [(False, {}, {}), (True, {"pending": 3}, {}), (True, {"unticked": 1}, {}), (True, {}, {"open_batch": 7})],
)
def test_a_member_is_missed_when_events_wait_for_its_group_or_in_its_batch(is_missed, of_group, of_member):
    _group, member = with_missing_members([replace(GROUP, **of_group), replace(MEMBER, **of_member)])

    assert member.is_missed is is_missed


@pytest.mark.parametrize(
    ("is_silent", "consumer"),
    [(True, replace(MEMBER, last_seen=HOUR)), (False, MEMBER), (False, replace(WORKER, last_seen=HOUR))],
    ids=["silent member", "member", "plain"],
)
def test_a_member_is_silent_when_it_has_lost_its_batch(is_silent, consumer):
    assert consumer.is_silent is is_silent

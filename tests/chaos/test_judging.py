"""tests/chaos/judging.py: what was seen, and what it means."""

from collections import Counter

import pytest

from tests.chaos.judging import (
    Told,
    Turn,
    difference,
    failovers,
    is_flat,
    longest_gap,
    lost,
    thirds,
    told_again_unanswered,
    told_twice,
)


def told(*messages):
    """Messages in the order they came; `x?` was taken without an answer."""
    return [Told(at, each.rstrip("?"), answered=not each.endswith("?")) for at, each in enumerate(messages)]


def test_lost_is_what_was_promised_and_reached_nobody():
    assert lost(["a", "b", "c"], told("b", "d", "c?")) == {"a"}


@pytest.mark.parametrize(
    ("messages", "twice", "again"),
    [
        ("a b c", "", ""),
        ("a b a", "a", ""),
        ("a a a", "aa", ""),
        ("a? a", "", "a"),
        ("a? a? a", "", "aa"),
        ("a? a a", "a", "a"),
        ("a a?", "a", ""),
    ],
)
def test_a_copy_is_the_senders_doing_once_an_answer_was_given(messages, twice, again):
    seen = told(*messages.split())

    assert (told_twice(seen), told_again_unanswered(seen)) == (Counter(twice), Counter(again))


def test_copies_are_judged_in_the_order_of_time():
    seen = [Told(2.0, "a", answered=True), Told(1.0, "a", answered=False)]

    assert told_twice(seen).total() == 0


@pytest.mark.parametrize(
    ("moments", "gap"), [([], 10), ([5], 5), ([1, 2, 9], 7), ([9, 1, 2], 7), ([3], 7), ([-5, 4, 20], 6)]
)
def test_the_longest_gap_counts_the_edges_of_the_run(moments, gap):
    assert longest_gap(moments, 0, 10) == gap


@pytest.mark.parametrize(
    ("turns", "gaps"),
    [
        ("1 leads", []),
        ("1 leads, 1 killed, 2 leads", [1]),
        ("1 leads, 2 killed, 1 killed, 2 leads", [1]),
        ("1 leads, 2 killed", []),
        ("1 leads, 1 killed, 1 killed, 2 leads", [2]),
        ("1 leads, 2 leads, 1 killed", []),
        ("1 leads, 1 killed, 2 leads, 2 killed, 1 leads", [1, 1]),
        ("1 leads, 1 killed", [float("inf")]),
    ],
)
def test_a_failover_lasts_from_the_leaders_death_to_the_next_lead(turns, gaps):
    seen = [Turn(at, *turn.split()) for at, turn in enumerate(turns.split(", "))]

    assert failovers(seen) == gaps


def test_thirds_are_of_time_not_of_number():
    samples = [(0, 10), (1, 10), (2, 12), (3, 50), (50, 99), (90, 20)]

    assert thirds(samples) == (11, 20)


@pytest.mark.parametrize(("last", "flat"), [(100, True), (114, True), (116, False), (50, True)])
def test_memory_is_flat_up_to_a_tenth_and_some_noise(last, flat):
    assert is_flat([(0, 100), (5, 100), (10, last)]) is flat


def test_a_difference_names_what_is_missing_and_what_is_too_much():
    assert difference({"a", "b"}, {"b", "c"}) == ["- a", "+ c"]
    assert difference({"a"}, {"a"}) == []

"""tests/chaos/report.py: which outcome of a run misses a goal."""

from dataclasses import replace

import pytest

from tests.chaos.facts import Promises
from tests.chaos.judging import Told, Turn
from tests.chaos.report import figures, missed_goals
from tests.chaos.run import Fire, Outcome
from tests.chaos.supervision import Supervised, Supervisor


@pytest.fixture
def seen():
    """A run in which all went well: two messages told, one of everything that is poison."""
    return Outcome(
        fire=Fire(seed=1, seconds=10, through_outbox=1, straight=1, kill_each=1),
        promises=Promises(facts=4, told={"a", "b"}, untold={"KEY email user:1"}, given_up={"KEY"}),
        told=[Told(1, "a"), Told(2, "b", answered=False), Told(3, "b")],
        untold={"KEY email user:1"},
        given_up={"KEY"},
        poison={"KEY notification_worker"},
        dead_letters={"KEY notification_worker"},
        forgotten=set(),
        uncertain={"c"},
        supervisor=Supervisor([]),
        begin=0,
        end=10,
        others=0,
        backlog="nothing",
        drained_after=0,
    )


def missed(seen):
    return missed_goals(figures(seen))


def test_a_run_in_which_all_went_well_misses_no_goal(seen):
    assert missed(seen) == []
    assert missed(replace(seen, told=[*seen.told, Told(4, "c")])) == []


@pytest.mark.parametrize(
    ("changes", "goals"),
    [
        ({"told": [Told(1, "a")]}, ["delivered", "lost"]),
        ({"forgotten": {"KEY"}}, ["delivered", "lost"]),
        ({"told": [Told(1, "a"), Told(2, "b"), Told(3, "b")]}, ["told twice"]),
        (
            {"told": [Told(1, "a"), Told(2, "b"), Told(3, "x")]},
            ["told twice where Message-IDs are compared"],
        ),
        ({"dead_letters": set()}, ["dead letters"]),
        ({"dead_letters": {"KEY notification_worker", "OTHER notification_worker"}}, ["dead letters"]),
        ({"untold": set()}, ["recipients not told"]),
        ({"given_up": {"KEY", "OTHER"}}, ["tasks given up"]),
    ],
)
def test_what_was_lost_told_twice_or_buried_misses_its_goal(seen, changes, goals):
    assert missed(replace(seen, **changes)) == goals


@pytest.mark.parametrize(("killed", "goals"), [("sla_breach_worker.2", []), ("qcluster.1", ["told twice"])])
def test_each_kill_of_one_who_tells_excuses_one_copy(seen, killed, goals):
    victim = Supervised(killed, [], {})
    victim.kills = 1

    assert missed(replace(seen, told=[*seen.told, Told(4, "a")], supervisor=Supervisor([victim]))) == goals


def test_a_process_that_hung_is_named(seen):
    victim = Supervised("qcluster.1", [], {})
    victim.lines = [(1, "INFO stopping"), (9, "stega: did not stop in time; what was open is left to be done again")]

    measured = figures(replace(seen, supervisor=Supervisor([victim])))

    (hung,) = [figure for figure in measured if figure.name == "processes that hung at the end"]
    assert (hung.limit, hung.reached) == ("qcluster.1", False)


def test_a_slow_failover_is_shown_and_excuses_nobody_nor_fails_the_run(seen):
    seen.supervisor.turns = [Turn(1, "1", "leads"), Turn(2, "1", "killed"), Turn(5, "2", "leads")]

    (failover,) = [figure for figure in figures(seen) if figure.name == "ticker fail-over"]
    assert (failover.value, failover.reached) == ("3.00 s", False)
    assert missed(seen) == []

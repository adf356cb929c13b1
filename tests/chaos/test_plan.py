"""tests/chaos/plan.py: every kind of fault, at times that leave somebody to lead."""

from collections import Counter
from itertools import pairwise

import pytest

from tests.chaos.plan import DATABASES, INSTANCES, TICKER_PEACE_SECONDS, TICKERS, plan

SEEDS = range(20)


def kills(faults):
    return [fault for fault in faults if fault.what == "kill"]


def test_the_same_seed_makes_the_same_plan():
    assert plan(1, 30, kill_each=3) == plan(1, 30, kill_each=3) != plan(2, 30, kill_each=3)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_short_run_takes_each_database_away_once_and_a_long_one_in_both_ways(seed):
    def taken_away(seconds):
        faults = plan(seed, seconds, kill_each=4)
        return Counter((fault.whom, fault.what) for fault in faults if fault.what in ("restart", "crash"))

    assert Counter(alias for alias, _ in taken_away(30).elements()) == Counter(DATABASES)
    assert taken_away(180) == Counter((alias, how) for alias in DATABASES for how in ("restart", "crash"))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_long_run_kills_every_process(seed):
    assert {fault.whom for fault in kills(plan(seed, 180, kill_each=4))} == set(INSTANCES)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_ticker_is_killed_only_while_another_can_take_over(seed):
    faults = plan(seed, 180, kill_each=4)
    moments = [fault.at for fault in kills(faults) if fault.whom in TICKERS]
    restarts = [fault.at for fault in faults if fault.whom == "events" and fault.what in ("restart", "crash")]

    assert all(later - earlier >= TICKER_PEACE_SECONDS for earlier, later in pairwise(moments))
    assert all(abs(moment - restart) >= TICKER_PEACE_SECONDS for moment in moments for restart in restarts)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_old_transaction_is_let_go_before_its_database_goes(seed):
    faults = plan(seed, 30, kill_each=3)
    order = [fault.what for fault in faults if fault.whom == "events" and fault.what != "kill"]

    assert order[:2] == ["hold", "let go"]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_tenth_is_calm(seed):
    faults = plan(seed, 100, kill_each=3)

    assert {fault.whom for fault in faults if fault.at >= 90} == {"fine"}
    assert [fault.whom for fault in faults if fault.what in ("mail", "slack")][-2:] == ["fine", "fine"]

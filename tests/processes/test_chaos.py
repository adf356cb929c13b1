"""The short form of `make chaos`."""

import pytest

from tests.chaos.report import figures, missed_goals
from tests.chaos.run import Fire, Run
from tests.support import processes

FIRE = Fire(seed=4, seconds=30, through_outbox=15, straight=15, kill_each=3)


@pytest.mark.long
def test_under_fire_nothing_is_lost_nothing_told_twice_and_only_poison_is_dead(event_log, tmp_path):
    seen = Run(FIRE, processes.environment(), tmp_path).play()

    measured = figures(seen)
    assert missed_goals(measured) == [], measured

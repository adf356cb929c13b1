"""The short form of `make chaos`, and each process in its own role, behind a pooler."""

import pytest
from django.db import connections

from tests.chaos.report import figures, missed_goals
from tests.chaos.run import Run
from tests.processes.test_chaos import FIRE
from tests.processes.test_roles import (  # noqa: F401 - told again
    prefix,
    test_a_breached_sla_goes_from_the_browser_to_people_with_each_process_in_its_own_role,
)
from tests.support import processes, servers


@pytest.mark.long
@pytest.mark.parametrize("is_listening", [True, False])
def test_under_fire_nothing_is_lost_nothing_told_twice_and_only_poison_is_dead(
    pooler, listening, tmp_path, is_listening
):
    behind = {**pooler.urls(), **(listening if is_listening else {"EVENTS_POOLED": "1"})}

    seen = Run(FIRE, processes.environment(**behind), tmp_path).play()

    measured = figures(seen)
    assert missed_goals(measured) == [], measured


@pytest.fixture
def as_kind(prefix, pooler):  # noqa: F811
    """The database URLs of a kind of process, which has sessions of its own in the pool."""

    def as_kind(kind):
        role = f"{prefix}_{kind}"
        pooler.roles |= {role}
        pooler.configure()
        direct = servers.events.url(str(connections["events"].settings_dict["NAME"]))
        listening = {"EVENTS_LISTEN_DATABASE_URL": direct.replace("//postgres@", f"//{role}@")}
        return {**pooler.urls(role), **listening}

    return as_kind

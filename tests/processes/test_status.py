"""`pgque_status --watch` goes on through an outage, until Ctrl+C."""

from django.db import connections

from tests.support import servers
from tests.support.processes import manage


def test_status_is_shown_again_and_again_through_an_outage(env):
    with manage("pgque_status", "--watch", "0.2", "--json", env=env) as watching:
        watching.wait_for('"trouble": null')
        connections["events"].close()
        servers.events.stop()
        try:
            watching.wait_for("the events database: unreachable")
        finally:
            servers.events.start()

        shown = watching.output.count('"trouble": null')
        watching.wait_for('"trouble": null')

        assert watching.interrupt() == 0
        assert shown
        assert "Traceback" not in watching.output

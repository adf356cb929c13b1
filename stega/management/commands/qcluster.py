import sys
from contextlib import suppress
from typing import Any

from django.db import InterfaceError, OperationalError, connections

from stega.installation.preparation import require_known_pooler, require_prepared
from stega.processes import fingerprint
from stega.processes.command import HealthChecked
from stega.tasks import schedules


class Command(HealthChecked):
    help = (
        "Run tasks: relay the outbox, publish events, scan SLAs. Run one or more. Stop it with SIGTERM or Ctrl+C: it "
        "finishes the tasks at hand."
    )
    process_name = "qcluster"

    def handle(self, **options: Any) -> None:
        """Stands in for django-q2's own command, which may start without a heartbeat, and serve another queue.

        Raises ImproperlyConfigured where that one would start, and fail for ever on an unprepared database.
        """
        from stega.tasks.cluster import Cluster

        for alias in ("default", "jobs"):
            require_prepared(alias)
        with suppress(OperationalError, InterfaceError):  # tasks wait for an `events` that is away
            require_known_pooler()
        fingerprint.compare(self.process_name)
        schedules.install()
        connections.close_all()  # before the cluster forks
        sys.exit(Cluster().run())

import sys
from typing import Any

from django.db import connections
from django_q.management.commands.qcluster import Command as QCluster

from stega import fingerprint, schedules
from stega.command import HealthChecked
from stega.preparation import require_prepared


class Command(HealthChecked, QCluster):  # type: ignore[misc]  # django-q2 ships no types
    help = (
        "Run tasks: relay the outbox, publish events, scan SLAs. Run one or more. Stop it with SIGTERM or Ctrl+C: it "
        "finishes the tasks at hand."
    )
    process_name = "qcluster"

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises ImproperlyConfigured where django-q2 would start, and fail for ever on an unprepared database."""
        from stega.cluster import Cluster

        for alias in ("default", "jobs"):
            require_prepared(alias)
        fingerprint.compare(self.process_name)
        schedules.install()
        connections.close_all()  # before the cluster forks
        if options["run_once"] or options["cluster_name"]:
            super().handle(*args, **options)
        else:
            sys.exit(Cluster().run())

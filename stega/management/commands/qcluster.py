from typing import Any

from django.db import connections
from django_q.management.commands.qcluster import Command as QCluster

from stega import schedules
from stega.preparation import require_prepared


class Command(QCluster):  # type: ignore[misc]  # django-q2 ships no types
    """django-q2's own command, which would start and then fail for ever where a database is not prepared."""

    def handle(self, *args: Any, **options: Any) -> None:
        for alias in ("default", "jobs"):
            require_prepared(alias)
        schedules.install()
        connections.close_all()  # before the cluster forks
        super().handle(*args, **options)

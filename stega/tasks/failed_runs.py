"""What django-q2 does with a run that failed: it keeps and logs which error and where, without the error's words, and
has the task come again, unless the run was its last.

The words may quote what a stranger wrote, a payload or a statement with its values; django-q2 keeps them as they are.
"""

import sys
from typing import Any

from django_q import worker
from django_q.signals import post_execute_in_worker

from stega.database.mismatch import OtherSchema
from stega.outbox import GivenUp
from stega.wording.text import told, trace


class Reporter:
    """What django-q2 tells of each error while it handles it, and asks again before the run's result is passed on."""

    def __init__(self) -> None:
        self.last = ""
        self.is_over = False

    def report(self) -> None:
        error = sys.exc_info()[1]
        self.is_over = isinstance(error, GivenUp)
        if self.is_over or isinstance(error, OtherSchema):
            self.last = str(error)
            return
        self.last = f"{told(error)}\n{trace(error)}" if error else ""

    def replace(self, task: dict[str, Any], **_: Any) -> None:
        if task.get("success") is False:
            task["result"] = self.last
            task["ack_failure"] = self.is_over


def install() -> None:
    """From now on, in this process and in those that it forks."""
    reporter = Reporter()
    worker.error_reporter = reporter
    post_execute_in_worker.connect(reporter.replace, weak=False, dispatch_uid="stega.tasks.failed_runs")

"""What django-q2 keeps and logs of a run that failed: which error and where, without its words.

They may quote what a stranger wrote, a payload or a statement with its values; django-q2 keeps them as they are.
"""

import sys
from typing import Any

from django_q import worker
from django_q.signals import post_execute_in_worker

from stega.wording.text import told, trace


class Reporter:
    """What django-q2 tells of each error while it handles it, and asks again before the run's result is passed on."""

    def __init__(self) -> None:
        self.last = ""

    def report(self) -> None:
        error = sys.exc_info()[1]
        self.last = f"{told(error)}\n{trace(error)}" if error else ""

    def replace(self, task: dict[str, Any], **_: Any) -> None:
        if task.get("success") is False:
            task["result"] = self.last


def keep_no_words() -> None:
    """From now on, in this process and in those that it forks."""
    reporter = Reporter()
    worker.error_reporter = reporter
    post_execute_in_worker.connect(reporter.replace, weak=False, dispatch_uid="stega.tasks.failed_runs")

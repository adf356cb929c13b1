"""django-q2's cluster as a process of Stega: with a heartbeat, an end in time, and a restart when it is stuck."""

import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from multiprocessing import Value
from types import FrameType
from typing import Any, NoReturn

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections
from django_q import cluster
from django_q.models import OrmQ
from django_q.scheduler import scheduler
from django_q.signals import pre_execute

from stega.database import patience
from stega.database.base import DatabaseWrapper
from stega.database.routers import home
from stega.processes.heartbeat import Heartbeat
from stega.processes.process import bound_waits, name_connections
from stega.processes.stopping import Deadline
from stega.tasks import failed_runs, schedules

logger = logging.getLogger(__name__)

STUCK_SECONDS = 10.0
"""How long work may lie before workers none of which is in a task."""

SCHEDULES_SECONDS = 60.0
"""Between two looks at schedules that a wrong clock has put off."""


class Sentinel(cluster.Sentinel):  # type: ignore[misc]  # django-q2 ships no types
    """Guards the workers and tells the main process so. Ends with it, as the workers end with their guard."""

    def __init__(self, beat: Any, *args: Any, **kwargs: Any) -> None:
        self.beat = beat
        self.main_pid = os.getppid()
        self.moved_at = self.scheduled_at = time.monotonic()
        os.register_at_fork(after_in_child=_end_with_parent)
        super().__init__(*args, **kwargs)

    def status(self) -> Any:
        """Called by django-q2 at every round of the guard; once in a while it looks for schedules that are due."""
        if os.getppid() != self.main_pid:
            os._exit(1)
        now = time.monotonic()
        if self.task_queue.empty() or any(worker.timer.value > 0 for worker in self.pool):
            self.moved_at = now
        if now - self.moved_at < STUCK_SECONDS:
            self.beat.value = now
        if now - self.scheduled_at >= settings.SCHEDULER_SECONDS and not self.stop_event.is_set():
            self.scheduled_at = now
            scheduler(broker=self.broker)
        return super().status()

    def reincarnate(self, process: Any) -> None:
        """Replace a worker that timed out or a helper that failed; for one that was killed, end the whole cluster.

        It may have died with a lock of the queues between them in its hand, as whoever waits at one does: its successor
        would wait for that lock for ever.
        """
        if process.exitcode is not None and process.exitcode < 0:
            logger.critical("%s was killed by signal %d: the cluster ends", process.name, -process.exitcode)
            os._exit(1)
        super().reincarnate(process)


def _guard(*args: Any) -> None:
    """What the guard's process runs. Its last words are told as those of the main process, which multiprocessing
    would not do.
    """
    try:
        Sentinel(*args)
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)


def _end_with_parent() -> None:
    """End this process soon after its parent has died: nobody would stop or replace it."""
    parent = os.getppid()

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(1)
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


def bound_task_waits() -> None:
    """Let the server of `events` end a wait sooner than a task's patience does: others want the worker, too.

    What tasks ask of `events` is short; on the others a whole run may be one statement, such as a week's report, and
    they may be behind a pooler, which refuses such settings. A step of an operator's action begins within half of the
    time-out. And every server ends what a worker left behind that gave up, or was cut.
    """
    longest = settings.Q_CLUSTER["timeout"]
    DatabaseWrapper.statement_seconds = patience.server_limit_of_tasks()
    bound_waits(lock_timeout=longest / 4, statement_timeout=longest * 3 / 8)


def let_tasks_give_way() -> None:
    """Let each task, from its beginning, have a limited patience."""
    pre_execute.connect(limit_patience, dispatch_uid="stega.tasks.cluster")


def limit_patience(**_: Any) -> None:
    """Let this worker's task take a database for away that keeps it waiting for most of its time-out.

    Cut, it would cost the worker.
    """
    patience.limit(settings.Q_CLUSTER["timeout"] * 3 / 4)


class Cluster(cluster.Cluster):  # type: ignore[misc]
    """The main process. It ends with exit code 1, and takes the workers with it, when the guard has died or is stuck.

    Tasks that were cut come again after TASK_RETRY_SECONDS.
    """

    def __init__(self) -> None:
        super().__init__()
        self.beat = Value("d", time.monotonic(), lock=False)
        self.schedules_seen_at = time.monotonic()
        self.is_asked_to_stop = False
        self.deadline: Deadline | None = None

    def run(self) -> int:
        """Work until a signal, or until the guard fails; the exit code."""
        cluster.Sentinel = partial(_guard, self.beat)
        heartbeat = Heartbeat("qcluster")
        heartbeat.start()
        name_connections("task_worker", ("default", "jobs", "events"))
        bound_task_waits()
        let_tasks_give_way()
        failed_runs.install()
        self.start()
        name_connections("qcluster", ("jobs",))  # of the main process alone, which looks at its queue each second
        self.deadline = Deadline()  # a thread, so after the fork
        self.deadline.expire = self.abandon  # type: ignore[method-assign]
        while self.sentinel.is_alive() and not self._is_stuck():
            if time.monotonic() - self.beat.value < 2 and self._reaches_its_queue():
                heartbeat.beat()
            self.sentinel.join(1.0)
        heartbeat.end()
        if self.is_asked_to_stop and not self.sentinel.is_alive():
            return 0
        logger.critical("The cluster's guard %s: ends, to be started again", "hangs" if self._is_stuck() else "died")
        self.kill()
        return 1

    def sig_handler(self, signum: int, frame: FrameType | None) -> None:
        if self.sentinel is None:
            os._exit(0)
        if self.deadline is None:
            self.abandon()  # still starting: nobody would watch whether the workers stop in time
        self.is_asked_to_stop = True
        self.deadline.begin()
        super().sig_handler(signum, frame)

    def abandon(self) -> NoReturn:
        self.kill()
        os._exit(0)

    def kill(self) -> None:
        """Kill the guard, if it has begun; the workers see it and end."""
        if self.sentinel.pid:
            with suppress(ProcessLookupError):
                os.kill(self.sentinel.pid, signal.SIGKILL)

    def _reaches_its_queue(self) -> bool:
        """Whether it does; on the way, once in a while, it looks after the schedules."""
        try:
            OrmQ.objects.exists()
            if time.monotonic() - self.schedules_seen_at > SCHEDULES_SECONDS:
                schedules.bring_back()
                self.schedules_seen_at = time.monotonic()
        except (DatabaseError, InterfaceError):
            connections[home("django_q")].close()
            return False
        return True

    def _is_stuck(self) -> bool:
        stuck: bool = time.monotonic() - self.beat.value > settings.HEALTHY_SECONDS
        return stuck

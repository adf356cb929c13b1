"""django-q2's queue of tasks, on the clock of its database."""

import logging
import threading
from typing import Any

from django.db import InterfaceError, OperationalError, connections
from django.db.models.functions import Now
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ

from stega.database.routers import home
from stega.wording.text import clean

logger = logging.getLogger(__name__)

AWAY_SECONDS = 1.0
"""Between two tries to reach the queue."""


class Broker(ORM):  # type: ignore[misc]  # django-q2 ships no types
    """django-q2's own queue, but that the database says what is due and how long a task is somebody's.

    A host whose clock is wrong, or jumps, hides nothing that it enqueues and keeps nothing that it took for longer than
    TASK_RETRY_SECONDS. Tasks are taken by one statement: clusters take different ones and do not wait for each other.
    """

    _trouble = ""

    def enqueue(self, task: str) -> int:
        package: OrmQ = self.get_connection().create(key=self.list_key or Conf.CLUSTER_NAME, payload=task, lock=Now())
        number: int = package.pk
        return number

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Some tasks, this caller's until the retry time is over; None, after a moment, when none is due.

        A database that is away is waited out here: django-q2 would end the process that asks, after 10 s of silence.
        """
        try:
            tasks = self._take()
        except (OperationalError, InterfaceError) as error:
            self._tell(f"The queue of tasks cannot be reached: {clean(str(error), 200)}")
            connections[home("django_q")].close()
            threading.Event().wait(AWAY_SECONDS)
            return None
        self._tell("")
        if not tasks:
            threading.Event().wait(Conf.POLL)
        return tasks or None

    def _take(self) -> list[tuple[int, str]]:
        statement = """
            update django_q_ormq set lock = statement_timestamp() + make_interval(secs => %s)
            where id in (
                select id from django_q_ormq where key = %s and lock <= statement_timestamp()
                order by id limit %s for update skip locked
            )
            returning id, payload
        """
        self.get_connection()  # closes one that was lost
        with connections[home("django_q")].cursor() as cursor:
            cursor.execute(statement, [Conf.RETRY, self.list_key, Conf.BULK])
            return sorted(cursor.fetchall())

    def _tell(self, trouble: str) -> None:
        """Log a trouble when it begins and when it ends."""
        if trouble and not self._trouble:
            logger.warning("%s", trouble)
        elif self._trouble and not trouble:
            logger.info("The queue of tasks is reached again")
        self._trouble = trouble

    def queue_size(self) -> int:
        return self._count(lock__lte=Now())

    def lock_size(self) -> int:
        return self._count(lock__gt=Now())

    def _count(self, **due: Any) -> int:
        size: int = self.get_connection().filter(key=self.list_key, **due).count()
        return size

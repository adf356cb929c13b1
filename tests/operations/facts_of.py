"""Facts of a Stega that is well, to be spoilt by a test."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from operations.facts import Facts
from operations.facts.actions import Actions
from operations.facts.configuration import Configuration
from operations.facts.databases import Database, Engine
from operations.facts.ledger import Ledger
from operations.facts.outbox import Outbox
from operations.facts.queues import Consumer, Queue, Queues
from operations.facts.reading import Reading, Trouble
from operations.facts.sessions import Session
from operations.facts.tasks import Scheduled, Tasks
from operations.facts.tickers import Leader, Tickers
from stega.tasks.schedules import SCHEDULES

NOW = datetime(2030, 1, 15, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def session(application: str, silent_for: timedelta | None = SECOND) -> Session:
    return Session(7, application, "10.0.0.7", silent_for)


DATABASE = Database("default", NOW, "17.2", False, None, timedelta(), False, 20, 100, (), None)
QUEUE = Queue(
    "stega.notifications", SECOND, 60 * SECOND, 9, 1.0, 0, 0, 2 * HOUR, HOUR, None, False, 8192, 0, 0, 0, None, 30
)
WORKER = Consumer(
    QUEUE.name, "notification_worker", None, False, SECOND, 0, None, SECOND, None, (session("notification_worker"),)
)
GROUP = replace(
    WORKER, name="sla_breach_dispatcher", is_group=True, tick_age=None, sessions=(session("sla_breach_dispatcher"),)
)
MEMBER = replace(GROUP, member="host-7-abc", is_group=False, sessions=None)
QUEUES = Queues(NOW, (QUEUE,), (WORKER, GROUP, MEMBER))
TICKERS = Tickers(NOW, True, Leader(7, "10.0.0.7", NOW - HOUR, SECOND), 1)
TASKS = Tasks(
    NOW,
    0,
    0,
    None,
    10,
    0,
    tuple(Scheduled(name, wanted["func"], NOW + HOUR) for name, wanted in SCHEDULES.items()),
    (session("qcluster"),),
)
OUTBOX = Outbox(NOW, 0, 0, None, None, 0, None, 0, None)
LEDGER = Ledger(NOW, (), (), ())
ACTIONS = Actions(NOW, 0, None)


def facts(**changed: Any) -> Facts:
    """A source may be given as its value or as the trouble with it; a database by its alias."""
    events = replace(DATABASE, alias="events", engine=Engine("0.2.2", "1.0.0", True))
    databases = {"default": DATABASE, "jobs": replace(DATABASE, alias="jobs"), "events": events}
    well = {"queues": QUEUES, "tickers": TICKERS, "tasks": TASKS, "outbox": OUTBOX, "ledger": LEDGER}
    told = {**well, "actions": ACTIONS, **changed}
    return Facts(
        databases={alias: _reading(alias, told.pop(alias, value)) for alias, value in databases.items()},
        configuration=told.pop("configuration", Configuration((), False, False)),
        **{name: _reading(_HOME[name], value) for name, value in told.items()},
    )


_HOME = {"queues": "events", "tickers": "events", "tasks": "jobs"} | dict.fromkeys(
    ("outbox", "ledger", "actions"), "default"
)


def _reading(alias: str, told: object) -> Reading[Any]:
    return Reading(alias, trouble=told) if isinstance(told, Trouble) else Reading(alias, told)

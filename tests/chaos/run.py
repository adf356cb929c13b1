"""A run under fire: real processes on three real servers, killed and cut off while facts happen; then what was left."""

import json
import random
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections
from django_q.models import OrmQ

from notifications.models import Delivery, State
from stega.models import OutboxEntry
from stega.pgque import catalogue, client
from stega.tasks import schedules
from tests.chaos.facts import Promises, populate, promised
from tests.chaos.judging import Told, lost
from tests.chaos.plan import INSTANCES, Fault, plan
from tests.chaos.receivers import MailServer, SlackServer, chance_of
from tests.chaos.supervision import Supervised, Supervisor, instance
from tests.support import servers
from tests.support.processes import run_task
from tests.support.sessions import Session
from tests.support.waiting import wait_until

ENVIRONMENT = {
    "EMAIL_TIMEOUT": 2,
    "SLACK_TIMEOUT_SECONDS": 2,
    "SLACK_PACE_SECONDS": 0.02,
    "DELIVERY_LEASE_SECONDS": 6,
    "UNCERTAIN_PAUSE_SECONDS": 0.2,
    "SLA_DEAD_INTERVAL_SECONDS": 3,
    "CIRCUIT_PAUSE_SECONDS": 0.2,
    "CIRCUIT_LONGEST_PAUSE_SECONDS": 1,
    "STEGA_LOG_LEVEL": "INFO",
    "TASK_TIMEOUT_SECONDS": 5,
    "TASK_RETRY_SECONDS": 6,
    "TASK_MAX_ATTEMPTS": 2,
    "TASK_WORKERS": 1,
    "OUTBOX_REST_SECONDS": 2,
    "OUTBOX_SWEEP_AFTER_SECONDS": 4,
    "PGQUE_MAINTENANCE_SECONDS": 5,
    "PGQUE_ROTATE_SECONDS": 2,
}
"""Everything that makes one wait is shortened, so that a run of seconds meets what else takes minutes."""
ROTATION = "10 seconds"
PATIENCE_SECONDS = 45.0
"""So long after the last message everything that is still promised counts as lost."""
SWEEP_EACH_SECONDS = 5.0
"""The schedule sweeps each minute, which is long for a run of seconds."""


@dataclass(frozen=True)
class Fire:
    """How hard a run is."""

    seed: int
    seconds: float
    through_outbox: float
    straight: float
    kill_each: float


@dataclass
class Outcome:
    """What was promised, what became of it, and how that went."""

    fire: Fire
    promises: Promises
    told: list[Told]
    untold: set[str]
    given_up: set[str]
    poison: set[str]
    dead_letters: set[str]
    forgotten: set[str]
    """Keys that were committed before the producer's eyes and that the outbox does not know."""
    uncertain: set[str]
    """Messages whose publishing was cut by a kill: told or not, both are right."""
    supervisor: Supervisor
    begin: float
    end: float
    others: int
    """Events that were published straight and are for nobody."""
    backlog: str
    """What was still on its way when the facts ended."""
    drained_after: float


class Run:
    """The stage of one run; `play()` does it."""

    def __init__(self, fire: Fire, env: Mapping[str, str], folder: Path) -> None:
        self.fire = fire
        self.faults = plan(fire.seed, fire.seconds, kill_each=fire.kill_each)
        self.chance = random.Random(fire.seed)
        self.mail = MailServer(chance_of(fire.seed))
        self.slack = SlackServer(chance_of(fire.seed))
        self.folder = folder
        self.journal = folder / "journal"
        self.env = dict(env)
        self.begin = 0.0
        self._old_transaction: Session | None = None

    def play(self) -> Outcome:
        self.journal.touch()
        with ExitStack() as stack:
            stack.enter_context(self.mail)
            stack.enter_context(self.slack)
            self.env |= {name: str(value) for name, value in ENVIRONMENT.items()}
            self.env |= {"EMAIL_HOST": self.mail.host, "EMAIL_PORT": str(self.mail.port)}
            self.env |= {"STEGA_RUN_DIR": str(self.folder / "run"), "DJANGO_SETTINGS_MODULE": "stega.settings"}
            populate(self.slack.url)
            schedules.install()
            client.set_queue_config(settings.PGQUE_QUEUE, "rotation_period", ROTATION)
            supervisor = stack.enter_context(Supervisor([self._instance(name) for name in INSTANCES]))
            wait_until(lambda: self.mail.told and self.slack.told, timeout=60)
            self.begin = time.monotonic()
            self._strike(supervisor)
            supervisor.instances["producer.1"].end()
            end = time.monotonic()
            backlog = f"{len(self._missing()):,} messages, {OutboxEntry.objects.open().count():,} outbox entries"
            self._drain()
            return self._outcome(supervisor, end, backlog)

    def _instance(self, name: str) -> Supervised:
        if name != "producer.1":
            return instance(name, self.env)
        rates = [str(self.fire.seed), str(self.fire.through_outbox), str(self.fire.straight)]
        command = [sys.executable, "-m", "tests.chaos.producer", *rates, str(self.journal)]
        return Supervised(name, command, self.env)

    def _strike(self, supervisor: Supervisor) -> None:
        """Let every fault happen at its time, and sweep the outbox meanwhile."""
        pause = threading.Event()
        sweeps = [Fault(at, "sweep", "jobs") for at in _each(SWEEP_EACH_SECONDS, self.fire.seconds)]
        for fault in sorted([*self.faults, *sweeps], key=lambda fault: fault.at):
            pause.wait(max(0.0, self.begin + fault.at - time.monotonic()))
            self._let_happen(fault, supervisor)
        pause.wait(max(0.0, self.begin + self.fire.seconds - time.monotonic()))

    def _let_happen(self, fault: Fault, supervisor: Supervisor) -> None:
        match fault.what:
            case "kill":
                supervisor.kill(fault.whom, self.chance)
            case "restart" | "crash":
                _take_away(fault.what, fault.whom, self.chance.uniform(0.5, 2.5))
            case "hold":
                self._old_transaction = Session(servers.events.url(str(connections["events"].settings_dict["NAME"])))
                self._old_transaction.value("select pg_current_xact_id()::text")
            case "let go":
                assert self._old_transaction is not None
                self._old_transaction.__exit__(None, None, None)
            case "mail":
                self.mail.weather = fault.whom
            case "slack":
                self.slack.weather = fault.whom
            case "sweep":
                _sweep()

    def _drain(self) -> None:
        """Wait until everything promised is told and nothing is on its way, for as long as there is progress."""
        pause = threading.Event()
        told, moved_at, swept_at = 0, time.monotonic(), 0.0
        while _is_something_open() or self._missing():
            now = time.monotonic()
            if now - swept_at > SWEEP_EACH_SECONDS:
                swept_at = now
                _sweep()
            if told != len(self._told()):
                told, moved_at = len(self._told()), now
            if now - moved_at > PATIENCE_SECONDS:
                return
            pause.wait(0.5)

    def _missing(self) -> set[str]:
        """What is promised and not told yet."""
        return lost(self._promises().told, self._told())

    def _promises(self) -> Promises:
        return promised(Journal(self.journal).welcomes)

    def _told(self) -> list[Told]:
        return [*self.mail.told, *self.slack.told]

    def _outcome(self, supervisor: Supervisor, end: float, backlog: str) -> Outcome:
        journal = Journal(self.journal)
        keys = {str(key) for key in OutboxEntry.objects.values_list("key", flat=True)}
        dead_letters = {f"{key} {consumer}" for key, consumer in _dead_letters() if key not in journal.cut}
        return Outcome(
            fire=self.fire,
            promises=self._promises(),
            told=self._told(),
            untold={
                f"{row.event_key} {row.channel} {row.recipient}"
                for row in Delivery.objects.exclude(state__in=[State.SENT, State.PENDING, State.SENDING])
            },
            given_up={str(entry.key) for entry in OutboxEntry.objects.exclude(failed_at=None)},
            poison=journal.poison,
            dead_letters=dead_letters,
            forgotten=journal.promised - keys,
            uncertain=promised(journal.cut_welcomes).told - self._promises().told,
            supervisor=supervisor,
            begin=self.begin,
            end=end,
            others=journal.others,
            backlog=backlog,
            drained_after=time.monotonic() - end,
        )


class Journal:
    """What the producers wrote down."""

    def __init__(self, path: Path) -> None:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        published = {line["published"] for line in lines if "published" in line}
        begun = [(UUID(line["welcome"]), line["user"]) for line in lines if "welcome" in line]
        poisoned = [line for line in lines if "poison" in line]
        self.promised = {line["promised"] for line in lines if "promised" in line}
        self.welcomes = [(key, user) for key, user in begun if str(key) in published]
        self.cut_welcomes = [(key, user) for key, user in begun if str(key) not in published]
        self.others = len(published) - len(self.welcomes) - len(poisoned)
        self.cut = {line["poison"] for line in poisoned} - published
        self.poison = {
            f"{line['poison']} {consumer}"
            for line in poisoned
            if line["poison"] in published
            for consumer in _readers(line["type"])
        }


def _readers(event_type: str) -> tuple[str, ...]:
    """Whose dead letter a bad event of the type is: of everybody, when nobody knows it."""
    known = catalogue.EVENT_TYPES.get(event_type)
    return known.consumers if known else (catalogue.NOTIFICATION_WORKER, catalogue.SLA_BREACH_DISPATCHER)


def _each(seconds: float, until: float) -> list[float]:
    return [number * seconds for number in range(1, int(until / seconds))]


def _sweep() -> None:
    with suppress(DatabaseError, InterfaceError):
        run_task("stega.outbox.sweep")


def _take_away(how: str, alias: str, seconds: float) -> None:
    """Stop the server in order or as a crash does, and start it again after a while."""
    connections[alias].close()
    server = servers.by_alias[alias]
    if how == "crash":
        server.kill()
    else:
        server.stop()
    threading.Event().wait(seconds)
    server.start()


def _is_something_open() -> bool:
    with connections["events"].cursor() as cursor:
        cursor.execute("""
            select exists (select from pgque.retry_queue)
                or exists (select from pgque.get_consumer_info() where current_batch is not null)
                or exists (select from pgque.get_queue_info() where ev_new > 0)
        """)
        (waits,) = cursor.fetchone()
    return waits or OutboxEntry.objects.open().exists() or OrmQ.objects.exists() or Delivery.objects.open().exists()


def _dead_letters() -> list[tuple[str, str]]:
    """The key of each, and whose it is."""
    with connections["events"].cursor() as cursor:
        cursor.execute("select ev_extra1, co_name from pgque.dead_letter join pgque.consumer on co_id = dl_consumer_id")
        return list(cursor.fetchall())

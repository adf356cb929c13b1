"""The names of all problems, and the words in which each is told and remedied."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from operations.facts.reading import Trouble


class Name(StrEnum):
    """Each has an alert rule, and a heading in docs/operations.md."""

    DEFAULT_DOWN = "default_down"
    JOBS_DOWN = "jobs_down"
    EVENTS_DOWN = "events_down"
    FACTS_MISSING = "facts_missing"
    READ_ONLY = "read_only"
    MIGRATIONS_PENDING = "migrations_pending"
    VERSION_MISMATCH = "version_mismatch"
    OLD_TRANSACTION = "old_transaction"
    CONNECTIONS_SHORT = "connections_short"
    CLOCK_SKEW = "clock_skew"
    TICKER_DEAD = "ticker_dead"
    WORKER_DEAD = "worker_dead"
    MEMBER_SILENT = "member_silent"
    ROTATION_BLOCKED = "rotation_blocked"
    POISON_MESSAGE = "poison_message"
    CLUSTER_DEAD = "cluster_dead"
    CLUSTER_STUCK = "cluster_stuck"
    SCHEDULE_LATE = "schedule_late"
    OUTBOX_STUCK = "outbox_stuck"
    TASK_GIVEN_UP = "task_given_up"
    SMTP_DOWN = "smtp_down"
    SLACK_DOWN = "slack_down"
    SETTINGS_UNSAFE = "settings_unsafe"


class Severity(StrEnum):
    CRITICAL = "critical"
    """People are not told, or soon will not be: somebody has to act now."""
    WARNING = "warning"
    """It holds for now: somebody has to look today."""


@dataclass(frozen=True, slots=True)
class Problem:
    """`name` and `subject` tell one problem from another; the words are in the active language."""

    name: Name
    subject: str
    text: str
    remedy: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class Words:
    """How a fault is told, and what mends it: msgids with places for what it is about."""

    name: Name
    severity: Severity
    text: str
    remedy: str

    def of(self, subject: str, /, **told: object) -> Problem:
        return Problem(self.name, subject, _(self.text) % told, _(self.remedy) % told, self.severity)


def seconds(duration: timedelta) -> str:
    """The duration for a sentence, such as "95 s"."""
    return _("%(number)d s") % {"number": duration.total_seconds()}


_CRITICAL, _WARNING = Severity.CRITICAL, Severity.WARNING
_RUN = gettext_noop("Run: %(command)s")

_LOOK_AFTER_SERVER = gettext_noop("Look after its server, the network to it, and %(variable)s.")
_UNREACHABLE = gettext_noop("The %(alias)s database cannot be reached.")
_SILENT = gettext_noop("The %(alias)s database does not answer in time.")
_DOWN = {"default": Name.DEFAULT_DOWN, "jobs": Name.JOBS_DOWN, "events": Name.EVENTS_DOWN}
UNREACHABLE = {alias: Words(name, _CRITICAL, _UNREACHABLE, _LOOK_AFTER_SERVER) for alias, name in _DOWN.items()}
SILENT = {alias: Words(name, _CRITICAL, _SILENT, _LOOK_AFTER_SERVER) for alias, name in _DOWN.items()}
READ_ONLY = Words(
    Name.READ_ONLY,
    _CRITICAL,
    gettext_noop("The %(alias)s database takes no writes."),
    gettext_noop("A fail-over may be under way: see that %(variable)s leads to the primary server."),
)
MIGRATIONS_PENDING = Words(
    Name.MIGRATIONS_PENDING,
    _CRITICAL,
    gettext_noop("The %(alias)s database lacks the migration %(name)s and maybe more."),
    _RUN,
)
VERSION_MISMATCH = Words(
    Name.VERSION_MISMATCH,
    _CRITICAL,
    gettext_noop("The event log is missing, or of another version than this code brings."),
    _RUN,
)
CLOCK_SKEW = Words(
    Name.CLOCK_SKEW,
    _WARNING,
    gettext_noop("The clocks of the %(alias)s server and of this host are %(skew)s apart."),
    gettext_noop("Let both hosts take their time from the same source (NTP)."),
)
CONNECTIONS_SHORT = Words(
    Name.CONNECTIONS_SHORT,
    _WARNING,
    gettext_noop("%(number)d of the %(limit)d connections of the %(alias)s server are taken."),
    gettext_noop("Run fewer processes, raise max_connections, or put a pooler before it."),
)
_OPEN_FOR_LONG = gettext_noop("On the %(alias)s server a transaction of %(who)s has been open for %(age)s.")
OLD_TRANSACTION = Words(
    Name.OLD_TRANSACTION,
    _WARNING,
    _OPEN_FOR_LONG,
    gettext_noop("It holds up cleaning and rotation. If nobody needs it: select pg_terminate_backend(%(pid)d);"),
)
PREPARED_TRANSACTION = Words(
    Name.OLD_TRANSACTION,
    _WARNING,
    _OPEN_FOR_LONG,
    gettext_noop("It was prepared and left. Commit it or roll it back: rollback prepared '%(gid)s';"),
)

_NOT_TOLD = gettext_noop("The %(alias)s database did not tell about: %(subject)s (%(trouble)s).")
_LET_IT_TELL = gettext_noop(
    "See that no lock holds it up, that it is migrated, not overloaded, and that the role may read it."
)
FACTS_MISSING = Words(Name.FACTS_MISSING, _WARNING, _NOT_TOLD, _LET_IT_TELL)
FACTS_MISSING_OF_EVENTS = Words(Name.FACTS_MISSING, _CRITICAL, _NOT_TOLD, _LET_IT_TELL)
"""Where the tables of `events` do not answer, consumers get no answer either, and nobody is told anything."""
SOURCES = {
    "queues": gettext_noop("Queues"),
    "tickers": gettext_noop("Tickers"),
    "tasks": gettext_noop("Tasks"),
    "outbox": gettext_noop("Outbox"),
    "ledger": gettext_noop("Ledger"),
}
"""As the console's pages are named."""
SERVER = gettext_noop("the state of its server")
TROUBLES = {
    Trouble.UNREACHABLE: gettext_noop("it cannot be reached"),
    Trouble.SILENT: gettext_noop("no answer in time"),
    Trouble.UNPREPARED: gettext_noop("a table or function is missing"),
    Trouble.REFUSED: gettext_noop("the question was refused"),
}

POISON_MESSAGE = Words(
    Name.POISON_MESSAGE,
    _WARNING,
    gettext_noop("Queue %(queue)s has new dead letters: %(number)d."),
    gettext_noop("Read their reasons in the console, mend the cause, then replay or purge them."),
)
_CANNOT_ROTATE = gettext_noop("Queue %(queue)s cannot rotate its tables and grows: it waits for %(who)s.")
ROTATION_WAITS_FOR_CONSUMER = Words(
    Name.ROTATION_BLOCKED,
    _WARNING,
    _CANNOT_ROTATE,
    gettext_noop("Start the consumer again, or, if nobody needs it any more, unsubscribe it."),
)
ROTATION_WAITS = Words(
    Name.ROTATION_BLOCKED,
    _WARNING,
    _CANNOT_ROTATE,
    gettext_noop("End the oldest transaction of the events server, and see that the ticker runs."),
)
_START_WORKER = gettext_noop("Start it, read its log, or start more of it: %(command)s")
WORKER_MISSING = Words(
    Name.WORKER_DEAD, _CRITICAL, gettext_noop("No process of consumer %(consumer)s runs."), _START_WORKER
)
WORKER_BEHIND = Words(
    Name.WORKER_DEAD,
    _CRITICAL,
    gettext_noop(
        "Consumer %(consumer)s of queue %(queue)s is behind. Events waiting: %(pending)d, the first for %(age)s."
    ),
    _START_WORKER,
)
MEMBER_SILENT = Words(
    Name.MEMBER_SILENT,
    _WARNING,
    gettext_noop("Member %(member)s of group %(group)s has given no sign of life for %(age)s, and nobody removed it."),
    gettext_noop("See that the ticker runs: it removes members whose processes are gone."),
)

_START_TICKER = gettext_noop("Start a ticker, or end the one that hangs and start it again: %(command)s")
NO_LEADER = Words(Name.TICKER_DEAD, _CRITICAL, gettext_noop("No ticker leads: events wait for a tick."), _START_TICKER)
LEADER_SILENT = Words(
    Name.TICKER_DEAD,
    _CRITICAL,
    gettext_noop("The leading ticker has done nothing for %(age)s: events wait for a tick."),
    _START_TICKER,
)
TICKS_MISSING = Words(
    Name.TICKER_DEAD, _CRITICAL, gettext_noop("Queue %(queue)s has had no tick for %(age)s."), _START_TICKER
)

CLUSTER_DEAD = Words(
    Name.CLUSTER_DEAD,
    _CRITICAL,
    gettext_noop("No cluster of task workers runs."),
    gettext_noop("Start one: %(command)s"),
)
_RESTART_CLUSTER = gettext_noop("End the cluster and start it again: %(command)s")
TASKS_OVERDUE = Words(
    Name.CLUSTER_STUCK,
    _CRITICAL,
    gettext_noop("Tasks are not done. Due: %(number)d, the first for %(age)s."),
    _RESTART_CLUSTER,
)
CLUSTERS_SILENT = Words(
    Name.CLUSTER_STUCK,
    _CRITICAL,
    gettext_noop("No cluster of task workers has asked for tasks for %(age)s."),
    _RESTART_CLUSTER,
)
SCHEDULE_MISSING = Words(Name.SCHEDULE_LATE, _WARNING, gettext_noop("The schedule %(name)s is missing."), _RUN)
SCHEDULE_LATE = Words(
    Name.SCHEDULE_LATE,
    _WARNING,
    gettext_noop("The schedule %(name)s should have run %(age)s ago."),
    gettext_noop("See that a cluster of task workers runs: %(command)s"),
)

OUTBOX_STUCK = Words(
    Name.OUTBOX_STUCK,
    _CRITICAL,
    gettext_noop("Outbox entries wait: %(number)d, the first for %(age)s."),
    gettext_noop("See that jobs and events are up, that a cluster of task workers runs, and read its log."),
)
TASK_GIVEN_UP = Words(
    Name.TASK_GIVEN_UP,
    _WARNING,
    gettext_noop("Outbox entries were given up after their last attempt: %(number)d."),
    gettext_noop("Read their last errors in the console, mend the cause, then let them run again; or let them be."),
)

_LINE_FAILS = gettext_noop("%(line)s has failed %(number)d times in a row: %(reason)s.")
SMTP_DOWN = Words(
    Name.SMTP_DOWN,
    _WARNING,
    _LINE_FAILS,
    gettext_noop("Look after the mail server, and EMAIL_HOST with its sign-in. What waits goes out by itself."),
)
SLACK_DOWN = Words(
    Name.SLACK_DOWN,
    _WARNING,
    _LINE_FAILS,
    gettext_noop("Look after the product's webhook at Slack. What waits goes out by itself."),
)

EVENTS_POOLED_UNSAID = Words(
    Name.SETTINGS_UNSAFE,
    _WARNING,
    gettext_noop("EVENTS_DATABASE_URL leads through a pooler, and EVENTS_POOLED does not say so."),
    gettext_noop("Set EVENTS_LISTEN_DATABASE_URL to the direct address, or EVENTS_POOLED=1."),
)
NO_DIRECT_ADDRESS = Words(
    Name.SETTINGS_UNSAFE,
    _WARNING,
    gettext_noop("Behind a pooler alone nobody stands by, and two tickers or notification workers both lead."),
    gettext_noop("Set EVENTS_LISTEN_DATABASE_URL to the direct address of the events database."),
)

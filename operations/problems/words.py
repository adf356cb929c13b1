"""The names of all problems, and the words in which each is told and remedied."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as N_

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
    ACTION_STUCK = "action_stuck"
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


def _critical(name: Name, text: str, remedy: str) -> Words:
    return Words(name, Severity.CRITICAL, text, remedy)


def _warning(name: Name, text: str, remedy: str) -> Words:
    return Words(name, Severity.WARNING, text, remedy)


_RUN = N_("Run: %(command)s")

_LOOK_AFTER_SERVER = N_("Look after its server, the network to it, and %(variable)s.")
_UNREACHABLE = N_("The %(alias)s database cannot be reached.")
_SILENT = N_("The %(alias)s database does not answer in time.")
_DOWN = {"default": Name.DEFAULT_DOWN, "jobs": Name.JOBS_DOWN, "events": Name.EVENTS_DOWN}
UNREACHABLE = {alias: _critical(name, _UNREACHABLE, _LOOK_AFTER_SERVER) for alias, name in _DOWN.items()}
SILENT = {alias: _critical(name, _SILENT, _LOOK_AFTER_SERVER) for alias, name in _DOWN.items()}
READ_ONLY = _critical(
    Name.READ_ONLY,
    N_("The %(alias)s database takes no writes."),
    N_("A fail-over may be under way: see that %(variable)s leads to the primary server."),
)
MIGRATIONS_PENDING = _critical(
    Name.MIGRATIONS_PENDING, N_("The %(alias)s database lacks the migration %(name)s and maybe more."), _RUN
)
VERSION_MISMATCH = _critical(
    Name.VERSION_MISMATCH, N_("The event log is missing, or of another version than this code brings."), _RUN
)
CLOCK_SKEW = _warning(
    Name.CLOCK_SKEW,
    N_("The clocks of the %(alias)s server and of this host are %(skew)s apart."),
    N_("Let both hosts take their time from the same source (NTP)."),
)
CONNECTIONS_SHORT = _warning(
    Name.CONNECTIONS_SHORT,
    N_("%(number)d of the %(limit)d connections of the %(alias)s server are taken."),
    N_("Run fewer processes, raise max_connections, or put a pooler before it."),
)
_OPEN_FOR_LONG = N_(
    "On the %(alias)s server a transaction of %(who)s in the database %(database)s has been open for %(age)s."
)
OLD_TRANSACTION = _warning(
    Name.OLD_TRANSACTION,
    _OPEN_FOR_LONG,
    N_("It holds up cleaning and rotation. If nobody needs it: select pg_terminate_backend(%(pid)d);"),
)
PREPARED_TRANSACTION = _warning(
    Name.OLD_TRANSACTION,
    _OPEN_FOR_LONG,
    N_("It was prepared and left. Commit it or roll it back: rollback prepared '%(gid)s';"),
)

_NOT_TOLD = N_("The %(alias)s database did not tell about: %(subject)s (%(trouble)s).")
_LET_IT_TELL = N_("See that no lock holds it up, that it is migrated, not overloaded, and that the role may read it.")
FACTS_MISSING = _warning(Name.FACTS_MISSING, _NOT_TOLD, _LET_IT_TELL)
FACTS_MISSING_OF_EVENTS = _critical(Name.FACTS_MISSING, _NOT_TOLD, _LET_IT_TELL)
"""Where the tables of `events` do not answer, consumers get no answer either, and nobody is told anything."""
SOURCES = {
    "queues": N_("Queues"),
    "tickers": N_("Tickers"),
    "tasks": N_("Tasks"),
    "outbox": N_("Outbox"),
    "ledger": N_("Deliveries"),
    "actions": N_("Record of actions"),
}
"""As the console's pages are named."""
SERVER = N_("the state of its server")
TROUBLES = {
    Trouble.UNREACHABLE: N_("it cannot be reached"),
    Trouble.SILENT: N_("no answer in time"),
    Trouble.UNPREPARED: N_("a table or function is missing"),
    Trouble.REFUSED: N_("the question was refused"),
}

POISON_MESSAGE = _warning(
    Name.POISON_MESSAGE,
    N_("Queue %(queue)s has new dead letters: %(number)d."),
    N_("Read their reasons in the console, mend the cause, then replay or delete them."),
)
RETRIES_DIFFER = _warning(
    Name.SETTINGS_UNSAFE,
    N_("Queue %(queue)s allows so many retries of an event: %(there)d. PGQUE_MAX_RETRIES says: %(here)d."),
    N_("Set the same for every process, then run: %(command)s"),
)
_CANNOT_ROTATE = N_("Queue %(queue)s cannot rotate its tables and grows: it waits for %(who)s.")
ROTATION_WAITS_FOR_CONSUMER = _warning(
    Name.ROTATION_BLOCKED,
    _CANNOT_ROTATE,
    N_("Start the consumer again, or, if nobody needs it any more, unsubscribe it."),
)
ROTATION_WAITS = _warning(
    Name.ROTATION_BLOCKED,
    _CANNOT_ROTATE,
    N_("End the oldest transaction of the events server, and see that the ticker runs."),
)
_START_WORKER = N_("Start it, read its log, or start more of it: %(command)s")
WORKER_MISSING = _critical(Name.WORKER_DEAD, N_("No process of consumer %(consumer)s runs."), _START_WORKER)
WORKER_BEHIND = _critical(
    Name.WORKER_DEAD,
    N_("Consumer %(consumer)s of queue %(queue)s is behind. Events waiting: %(pending)d, lag: %(age)s."),
    _START_WORKER,
)
MEMBER_SILENT = _warning(
    Name.MEMBER_SILENT,
    N_("Member %(member)s of group %(group)s has given no sign of life for %(age)s, and nobody removed it."),
    N_("See that the ticker runs: it removes members whose processes are gone."),
)

_START_TICKER = N_("Start a ticker; if one runs, read its log: %(command)s")
NO_LEADER = _critical(Name.TICKER_DEAD, N_("No ticker leads: events wait for a tick."), _START_TICKER)
LEADER_SILENT = _critical(
    Name.TICKER_DEAD,
    N_("The leading ticker has done nothing for %(age)s: events wait for a tick."),
    N_("Start a second one, which takes over from one that hangs, and end that one with SIGKILL: %(command)s"),
)
TICKS_MISSING = _critical(Name.TICKER_DEAD, N_("Queue %(queue)s has had no tick for %(age)s."), _START_TICKER)

CLUSTER_DEAD = _critical(Name.CLUSTER_DEAD, N_("No cluster of task workers runs."), N_("Start one: %(command)s"))
_RESTART_CLUSTER = N_("End the cluster and start it again: %(command)s")
TASKS_OVERDUE = _critical(
    Name.CLUSTER_STUCK, N_("Tasks are not done. Due: %(number)d, the first for %(age)s."), _RESTART_CLUSTER
)
CLUSTERS_SILENT = _critical(
    Name.CLUSTER_STUCK, N_("No cluster of task workers has asked for tasks for %(age)s."), _RESTART_CLUSTER
)
SCHEDULE_MISSING = _warning(Name.SCHEDULE_LATE, N_("The schedule %(name)s is missing."), _RUN)
SCHEDULE_LATE = _warning(
    Name.SCHEDULE_LATE,
    N_("The schedule %(name)s should have run %(age)s ago."),
    N_("See that a cluster of task workers runs: %(command)s"),
)

OUTBOX_STUCK = _critical(
    Name.OUTBOX_STUCK,
    N_("Outbox entries wait: %(number)d, the first for %(age)s."),
    N_("See that jobs and events are up, that a cluster of task workers runs, and read its log."),
)
OUTBOX_FAILS = _warning(
    Name.OUTBOX_STUCK,
    N_("Tasks of outbox entries fail and come again: %(number)d, the first for %(age)s."),
    N_("Read their last errors in the console and mend the cause. What goes on failing is given up."),
)
TASK_GIVEN_UP = _warning(
    Name.TASK_GIVEN_UP,
    N_("Outbox entries were given up after their last attempt: %(number)d."),
    N_("Read their last errors in the console, mend the cause, then let them run again; or let them be."),
)

ACTION_STUCK = _warning(
    Name.ACTION_STUCK,
    N_("An operator's action has stood still for %(age)s. Open: %(number)d."),
    N_(
        "See that the databases are up and that a cluster of task workers runs. If its outbox entry was given up, let "
        "that run again, or let it be."
    ),
)

_LINE_FAILS = N_("%(line)s fails: %(reason)s. Times in a row: %(number)d.")
SMTP_DOWN = _warning(
    Name.SMTP_DOWN,
    _LINE_FAILS,
    N_("Look after the mail server, and EMAIL_HOST with its sign-in. What waits goes out by itself."),
)
MAIL_PUT_OFF = _warning(
    Name.SMTP_DOWN,
    N_("The mail server answers and puts everybody off. People who wait: %(number)d, the first for %(age)s."),
    N_("Read in the ledger what it says, and ask whoever runs it. What waits goes out by itself."),
)
SLACK_DOWN = _warning(
    Name.SLACK_DOWN, _LINE_FAILS, N_("Look after the product's webhook at Slack. What waits goes out by itself.")
)

EVENTS_POOLED_UNSAID = _warning(
    Name.SETTINGS_UNSAFE,
    N_("EVENTS_DATABASE_URL leads through a pooler, and EVENTS_POOLED does not say so."),
    N_("Set EVENTS_LISTEN_DATABASE_URL to the direct address, or EVENTS_POOLED=1."),
)
NO_DIRECT_ADDRESS = _warning(
    Name.SETTINGS_UNSAFE,
    N_("Behind a pooler alone nobody stands by, and two tickers or notification workers both lead."),
    N_("Set EVENTS_LISTEN_DATABASE_URL to the direct address of the events database."),
)

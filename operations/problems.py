"""What is wrong, told from facts alone: one vocabulary for /metrics, doctor, the console and the alert rules."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.conf import settings
from django.utils.translation import gettext as _

from operations.facts import Facts
from operations.facts.configuration import Configuration
from operations.facts.databases import Database, Transaction
from operations.facts.ledger import Ledger
from operations.facts.outbox import Outbox
from operations.facts.queues import Consumer, Queue, Queues
from operations.facts.reading import Reading, Trouble
from operations.facts.tasks import Tasks
from operations.facts.tickers import Tickers
from stega.pgque.catalogue import NOTIFICATION_WORKER, SLA_BREACH_DISPATCHER
from stega.schedules import SCHEDULES


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


OUR_CONSUMERS = {NOTIFICATION_WORKER: "notification_worker", SLA_BREACH_DISPATCHER: "sla_breach_worker"}
"""Consumer -> the command of its processes. Other programs' consumers are only looked at for what they leave unread."""

_DOWN = {"default": Name.DEFAULT_DOWN, "jobs": Name.JOBS_DOWN, "events": Name.EVENTS_DOWN}
_VARIABLES = {"default": "DATABASE_URL", "jobs": "JOBS_DATABASE_URL", "events": "EVENTS_DATABASE_URL"}


def problems(facts: Facts, now: datetime) -> list[Problem]:
    """Every problem, the critical ones first. What a database did not answer is a problem itself, never silence."""
    found = [*_of_databases(facts), *_missing(facts)]
    if facts.queues.value:
        found += _of_queues(facts.queues.value)
    if facts.tickers.value and facts.queues.value:
        found += _of_tickers(facts.tickers.value, facts.queues.value)
    if facts.tasks.value:
        found += _of_tasks(facts.tasks.value, now)
    if facts.outbox.value:
        found += _of_outbox(facts.outbox.value, now)
    if facts.ledger.value:
        found += _of_lines(facts.ledger.value, now)
    found += _of_configuration(facts.configuration, facts.databases.get("events"))
    return sorted(found, key=lambda problem: (problem.severity != Severity.CRITICAL, problem.name, problem.subject))


def seconds(duration: timedelta) -> str:
    """The duration for a sentence, such as "95 s"."""
    return _("%(number)d s") % {"number": duration.total_seconds()}


def _of_databases(facts: Facts) -> Iterator[Problem]:
    told: set[tuple[object, ...]] = set()
    for alias, reading in facts.databases.items():
        if reading.trouble in (Trouble.UNREACHABLE, Trouble.SILENT):
            yield _down(alias, reading.trouble)
        elif reading.value:
            yield from _of_database(reading.value)
            yield from _of_transaction(reading.value, told)


def _down(alias: str, trouble: Trouble) -> Problem:
    text = (
        _("The %(alias)s database cannot be reached.")
        if trouble == Trouble.UNREACHABLE
        else _("The %(alias)s database does not answer in time.")
    )
    return Problem(
        _DOWN[alias],
        alias,
        text % {"alias": alias},
        _("Look after its server, the network to it, and %(variable)s.") % {"variable": _VARIABLES[alias]},
        Severity.CRITICAL,
    )


def _of_database(database: Database) -> Iterator[Problem]:
    alias = {"alias": database.alias}
    if database.is_read_only:
        yield Problem(
            Name.READ_ONLY,
            database.alias,
            _("The %(alias)s database takes no writes.") % alias,
            _("A fail-over may be under way: see that %(variable)s leads to the primary server.")
            % {"variable": _VARIABLES[database.alias]},
            Severity.CRITICAL,
        )
    if database.pending_migrations:
        yield Problem(
            Name.MIGRATIONS_PENDING,
            database.alias,
            _("The %(alias)s database lacks the migration %(name)s and maybe more.")
            % {**alias, "name": database.pending_migrations[0]},
            _("Run: %(command)s") % {"command": f"python manage.py migrate --database={database.alias}"},
            Severity.CRITICAL,
        )
    if database.engine and not database.engine.is_current:
        yield Problem(
            Name.VERSION_MISMATCH,
            database.alias,
            _("The event log is missing, or of another version than this code brings."),
            _("Run: %(command)s") % {"command": "python manage.py pgque_bootstrap"},
            Severity.CRITICAL,
        )
    yield from _of_server(database)


def _of_transaction(database: Database, told: set[tuple[object, ...]]) -> Iterator[Problem]:
    """Once for each transaction, though every alias of a server that they share tells of it."""
    oldest = database.oldest_transaction
    if oldest is None:
        return
    identity = (oldest.pid, oldest.application, oldest.database, oldest.began)
    if oldest.age > timedelta(seconds=settings.OLD_TRANSACTION_SECONDS) and identity not in told:
        told.add(identity)
        yield Problem(
            Name.OLD_TRANSACTION,
            database.alias,
            _("On the %(alias)s server a transaction of %(who)s has been open for %(age)s.")
            % {
                "alias": database.alias,
                "who": f"{oldest.application or '-'} (pid {oldest.pid}, {oldest.database})",
                "age": seconds(oldest.age),
            },
            _end(oldest),
            Severity.WARNING,
        )


def _of_server(database: Database) -> Iterator[Problem]:
    if abs(database.clock_skew) > timedelta(seconds=settings.CLOCK_SKEW_SECONDS):
        yield Problem(
            Name.CLOCK_SKEW,
            database.alias,
            _("The clocks of the %(alias)s server and of this host are %(skew)s apart.")
            % {"alias": database.alias, "skew": seconds(abs(database.clock_skew))},
            _("Let both hosts take their time from the same source (NTP)."),
            Severity.WARNING,
        )
    if database.connections > 0.9 * database.max_connections:
        yield Problem(
            Name.CONNECTIONS_SHORT,
            database.alias,
            _("%(number)d of the %(limit)d connections of the %(alias)s server are taken.")
            % {"number": database.connections, "limit": database.max_connections, "alias": database.alias},
            _("Run fewer processes, raise max_connections, or put a pooler before it."),
            Severity.WARNING,
        )


def _end(oldest: Transaction) -> str:
    if not oldest.pid:
        statement = {"gid": oldest.application}
        return _("It was prepared and left. Commit it or roll it back: rollback prepared '%(gid)s';") % statement
    remedy = _("It holds up cleaning and rotation. If nobody needs it: select pg_terminate_backend(%(pid)d);")
    return remedy % {"pid": oldest.pid}


def _missing(facts: Facts) -> Iterator[Problem]:
    """What could not be read although its database answered otherwise."""
    down = {a for a, reading in facts.databases.items() if reading.trouble in (Trouble.UNREACHABLE, Trouble.SILENT)}
    sources: dict[str, Reading[object]] = {f"database {alias}": each for alias, each in facts.databases.items()}
    sources |= {
        "queues": facts.queues,
        "tickers": facts.tickers,
        "tasks": facts.tasks,
        "outbox": facts.outbox,
        "ledger": facts.ledger,
    }
    for subject, reading in sources.items():
        if reading.trouble and reading.alias not in down:
            yield Problem(
                Name.FACTS_MISSING,
                subject,
                _("The %(alias)s database did not tell about: %(subject)s (%(trouble)s).")
                % {"alias": reading.alias, "subject": _told_subject(subject), "trouble": _TROUBLES[reading.trouble]()},
                _("See that no lock holds it up, that it is migrated, not overloaded, and that the role may read it."),
                _severity_of(reading),
            )


_TROUBLES = {
    Trouble.UNREACHABLE: lambda: _("it cannot be reached"),
    Trouble.SILENT: lambda: _("no answer in time"),
    Trouble.UNPREPARED: lambda: _("a table or function is missing"),
    Trouble.REFUSED: lambda: _("the question was refused"),
}


def _told_subject(source: str) -> str:
    """The source as the console's pages name it."""
    pages = {
        "queues": _("Queues"),
        "tickers": _("Tickers"),
        "tasks": _("Tasks"),
        "outbox": _("Outbox"),
        "ledger": _("Ledger"),
    }
    return pages.get(source) or _("the state of its server")


def _severity_of(missing: Reading[object]) -> Severity:
    """Where the tables of `events` do not answer, consumers get no answer either, and nobody is told anything."""
    is_stuck = missing.alias == "events" and missing.trouble in (Trouble.SILENT, Trouble.UNREACHABLE)
    return Severity.CRITICAL if is_stuck else Severity.WARNING


def _of_queues(log: Queues) -> Iterator[Problem]:
    for queue in log.queues:
        yield from _of_queue(queue)
    for consumer in log.consumers:
        yield from _of_member(consumer) if consumer.member else _of_consumer(consumer)


def _of_queue(queue: Queue) -> Iterator[Problem]:
    if queue.new_dead_letters:
        yield Problem(
            Name.POISON_MESSAGE,
            queue.name,
            _("Queue %(queue)s has new dead letters: %(number)d.")
            % {"queue": queue.name, "number": queue.new_dead_letters},
            _("Read their reasons in the console, mend the cause, then replay or purge them."),
            Severity.WARNING,
        )
    for blocker in queue.waits_for or (("",) if queue.waits_for is not None else ()):
        yield Problem(
            Name.ROTATION_BLOCKED,
            f"{queue.name} {blocker}".rstrip(),
            _("Queue %(queue)s cannot rotate its tables and grows: it waits for %(who)s.")
            % {"queue": queue.name, "who": blocker or _("an old transaction or a paused ticker")},
            _("Start the consumer again, or, if nobody needs it any more, unsubscribe it.")
            if blocker
            else _("End the oldest transaction of the events server, and see that the ticker runs."),
            Severity.WARNING,
        )


def _of_consumer(consumer: Consumer) -> Iterator[Problem]:
    command = OUR_CONSUMERS.get(consumer.name)
    text = ""
    if command and consumer.sessions == ():
        text = _("No process of consumer %(consumer)s runs.")
    elif consumer.pending and (consumer.waiting or timedelta()) > timedelta(seconds=settings.WORKER_BEHIND_SECONDS):
        text = _(
            "Consumer %(consumer)s of queue %(queue)s is behind. Events waiting: %(pending)d, the first for %(age)s."
        )
    if text:
        yield Problem(
            Name.WORKER_DEAD,
            consumer.name,
            text
            % {
                "consumer": consumer.name,
                "queue": consumer.queue,
                "pending": consumer.pending or 0,
                "age": seconds(consumer.waiting or timedelta()),
            },
            _("Start it, read its log, or start more of it: %(command)s")
            % {"command": f"python manage.py {command}" if command else consumer.name},
            Severity.CRITICAL,
        )


def _of_member(consumer: Consumer) -> Iterator[Problem]:
    """The ticker removes members that are silent for PGQUE_SILENT_MEMBER_SECONDS; twice that is a problem."""
    if consumer.last_seen > timedelta(seconds=2 * settings.PGQUE_SILENT_MEMBER_SECONDS):
        yield Problem(
            Name.MEMBER_SILENT,
            f"{consumer.name}.{consumer.member}",
            _("Member %(member)s of group %(group)s has given no sign of life for %(age)s, and nobody removed it.")
            % {"member": consumer.member, "group": consumer.name, "age": seconds(consumer.last_seen)},
            _("See that the ticker runs: it removes members whose processes are gone."),
            Severity.WARNING,
        )


def _of_tickers(tickers: Tickers, log: Queues) -> Iterator[Problem]:
    patience = timedelta(seconds=settings.TICKER_DEAD_SECONDS)
    silent = tickers.leader.silent_for if tickers.leader else None
    text = ""
    if tickers.is_visible and tickers.leader is None:
        text = _("No ticker leads: events wait for a tick.")
    elif silent is not None and silent > patience:
        text = _("The leading ticker has done nothing for %(age)s: events wait for a tick.") % {"age": seconds(silent)}
    elif late := [queue for queue in log.queues if _lacks_ticks(queue, patience)]:
        lag = max(queue.ticker_lag or timedelta() for queue in late)
        text = _("Queue %(queue)s has had no tick for %(age)s.") % {"queue": late[0].name, "age": seconds(lag)}
    if text:
        remedy = _("Start a ticker, or end the one that hangs and start it again: %(command)s")
        command = {"command": "python manage.py pgque_ticker"}
        yield Problem(Name.TICKER_DEAD, "ticker", text, remedy % command, Severity.CRITICAL)


def is_unticked(queue: Queue, tickers: Tickers | None) -> bool:
    """Whether nobody does for the queue what a ticker should: what ticker_dead says, about one queue and at once."""
    patience = timedelta(seconds=settings.TICKER_DEAD_SECONDS)
    if queue.is_paused:
        return False
    if tickers is None or not tickers.is_visible:
        return _lacks_ticks(queue, patience)
    silent = tickers.leader.silent_for if tickers.leader else None
    hangs = silent is not None and silent > patience
    return tickers.leader is None or hangs or _lacks_ticks(queue, patience)


def _lacks_ticks(queue: Queue, patience: timedelta) -> bool:
    return not queue.is_paused and (queue.ticker_lag is None or queue.ticker_lag > queue.idle_period + patience)


def _of_tasks(tasks: Tasks, now: datetime) -> Iterator[Problem]:
    command = {"command": "python manage.py qcluster"}
    patience = timedelta(seconds=settings.CLUSTER_STUCK_SECONDS)
    if tasks.clusters == ():
        text, remedy = _("No cluster of task workers runs."), _("Start one: %(command)s") % command
        yield Problem(Name.CLUSTER_DEAD, "qcluster", text, remedy, Severity.CRITICAL)
    elif stuck := _stuck(tasks, patience):
        remedy = _("End the cluster and start it again: %(command)s") % command
        yield Problem(Name.CLUSTER_STUCK, "qcluster", stuck, remedy, Severity.CRITICAL)
    next_runs = {each.name: each.next_run for each in tasks.schedules}
    for name in SCHEDULES:
        yield from _of_schedule(name, name in next_runs, next_runs.get(name), now)


def _stuck(tasks: Tasks, patience: timedelta) -> str:
    if tasks.oldest_due and tasks.oldest_due > patience:
        return _("Tasks are not done. Due: %(number)d, the first for %(age)s.") % {
            "number": tasks.due,
            "age": seconds(tasks.oldest_due),
        }
    silences = [each.silent_for for each in tasks.clusters or ()]
    if silences and all(silence is not None and silence > patience for silence in silences):
        age = min(silence for silence in silences if silence is not None)
        return _("No cluster of task workers has asked for tasks for %(age)s.") % {"age": seconds(age)}
    return ""


def _of_schedule(name: str, is_there: bool, next_run: datetime | None, now: datetime) -> Iterator[Problem]:
    if not is_there:
        text = _("The schedule %(name)s is missing.") % {"name": name}
        remedy = _("Run: %(command)s") % {"command": "python manage.py schedules"}
    elif next_run and now - next_run > timedelta(seconds=settings.SCHEDULE_LATE_SECONDS):
        text = _("The schedule %(name)s should have run %(age)s ago.") % {"name": name, "age": seconds(now - next_run)}
        remedy = _("See that a cluster of task workers runs: %(command)s") % {"command": "python manage.py qcluster"}
    else:
        return
    yield Problem(Name.SCHEDULE_LATE, name, text, remedy, Severity.WARNING)


def _of_outbox(outbox: Outbox, now: datetime) -> Iterator[Problem]:
    if outbox.oldest_open and outbox.oldest_open > timedelta(seconds=settings.OUTBOX_STUCK_SECONDS):
        yield Problem(
            Name.OUTBOX_STUCK,
            "outbox",
            _("Outbox entries wait: %(number)d, the first for %(age)s.")
            % {"number": outbox.open, "age": seconds(outbox.oldest_open)},
            _("See that jobs and events are up, that a cluster of task workers runs, and read its log."),
            Severity.CRITICAL,
        )
    newest = outbox.last_given_up_at
    if newest and now - newest < timedelta(seconds=settings.DEAD_LETTER_ALERT_SECONDS):
        yield Problem(
            Name.TASK_GIVEN_UP,
            "outbox",
            _("Outbox entries were given up after their last attempt: %(number)d.") % {"number": outbox.given_up},
            _("Read their last errors in the console, mend the cause, then let them run again."),
            Severity.WARNING,
        )


def _of_lines(ledger: Ledger, now: datetime) -> Iterator[Problem]:
    """A line counts as down until a probe gets through, as long as anything waits for it or the pause goes on."""
    waiting = {each.channel: each.deliveries for each in ledger.waiting}
    for line in ledger.lines:
        if line.failures < settings.CIRCUIT_FAILURES or line.retry_at is None:
            continue
        if line.retry_at < now and not waiting.get(line.channel):
            continue
        is_mail = line.channel == "email"
        yield Problem(
            Name.SMTP_DOWN if is_mail else Name.SLACK_DOWN,
            line.name,
            _("%(line)s has failed %(number)d times in a row: %(reason)s.")
            % {"line": line.name, "number": line.failures, "reason": _(line.reason) if line.reason else "-"},
            _("Look after the mail server, and EMAIL_HOST with its sign-in. What waits goes out by itself.")
            if is_mail
            else _("Look after the product's webhook at Slack. What waits goes out by itself."),
            Severity.WARNING,
        )


def _of_configuration(configuration: Configuration, events: Reading[Database] | None) -> Iterator[Problem]:
    for finding in configuration.findings:
        yield _unsafe(finding.id, finding.text, finding.remedy)
    if events and events.value and events.value.is_pooled and not configuration.is_said_to_be_pooled:
        yield _unsafe(
            "EVENTS_POOLED",
            _("EVENTS_DATABASE_URL leads through a pooler, and EVENTS_POOLED does not say so."),
            _("Set EVENTS_LISTEN_DATABASE_URL to the direct address, or EVENTS_POOLED=1."),
        )
    if configuration.is_said_to_be_pooled and not configuration.has_direct_address:
        yield _unsafe(
            "EVENTS_LISTEN_DATABASE_URL",
            _("Behind a pooler alone nobody stands by, and two tickers or notification workers both lead."),
            _("Set EVENTS_LISTEN_DATABASE_URL to the direct address of the events database."),
        )


def _unsafe(subject: str, text: str, remedy: str) -> Problem:
    return Problem(Name.SETTINGS_UNSAFE, subject, text, remedy, Severity.WARNING)

"""Facts and problems in Prometheus' words. The rules and the dashboard in deploy/ are written in these names."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from operations.facts import Facts
from operations.facts.actions import Actions
from operations.facts.databases import Database
from operations.facts.ledger import Ledger
from operations.facts.outbox import Outbox
from operations.facts.queues import Queues
from operations.facts.tasks import Tasks
from operations.facts.tickers import Tickers
from operations.problems.words import Problem

Thing = TypeVar("Thing")
Value = float | timedelta | None


class _Scrape(Collector):
    """One scrape's metrics. What a database did not tell is left out; `stega_database_up` says why."""

    def __init__(self, facts: Facts, problems: list[Problem]) -> None:
        self.facts = facts
        self.problems = problems

    def collect(self) -> Iterator[GaugeMetricFamily]:
        facts = self.facts
        answers = _Each(facts.databases.items(), alias=lambda each: each[0])
        yield answers.gauge("database_up", "Whether the database answered in time", lambda each: bool(each[1].value))
        yield from _databases([reading.value for reading in facts.databases.values() if reading.value])
        if facts.queues.value:
            yield from _queues(facts.queues.value)
            yield from _consumers(facts.queues.value)
        if facts.tickers.value:
            yield from _tickers(facts.tickers.value)
        if facts.tasks.value:
            yield from _tasks(facts.tasks.value)
        if facts.outbox.value:
            yield from _outbox(facts.outbox.value)
        if facts.ledger.value:
            yield from _ledger(facts.ledger.value)
        if facts.actions.value:
            yield from _actions(facts.actions.value)
        yield _problems(self.problems)


def registry(facts: Facts, problems: list[Problem]) -> CollectorRegistry:
    """A registry of this scrape alone: nothing is kept between scrapes, processes or hosts."""
    scrape = CollectorRegistry(auto_describe=False)
    scrape.register(_Scrape(facts, problems))
    return scrape


class _Each(Generic[Thing]):
    """Gauges with a row for each of the things, which their labels tell apart."""

    def __init__(self, things: Iterable[Thing], **labels: Callable[[Thing], str]) -> None:
        self._labels = tuple(labels)
        self._things = [([label(thing) for label in labels.values()], thing) for thing in things]

    def gauge(self, name: str, about: str, value: Callable[[Thing], Value]) -> GaugeMetricFamily:
        return _gauge(name, about, self._labels, [(labels, value(thing)) for labels, thing in self._things])


def _gauge(name: str, about: str, labels: Sequence[str], rows: Iterable[tuple[list[str], Value]]) -> GaugeMetricFamily:
    """Rows without a value are left out; durations become seconds."""
    family = GaugeMetricFamily(f"stega_{name}", about, labels=labels)
    for values, value in rows:
        if value is not None:
            family.add_metric(values, value.total_seconds() if isinstance(value, timedelta) else float(value))
    return family


def _single(name: str, about: str, value: Value) -> GaugeMetricFamily:
    return _gauge(name, about, (), [([], value)])


def _by(label: str, name: str, about: str, values: dict[str, Value]) -> GaugeMetricFamily:
    """A row for each value of the one label."""
    return _gauge(name, about, (label,), [([key], value) for key, value in values.items()])


def _databases(databases: list[Database]) -> Iterator[GaugeMetricFamily]:
    gauge = _Each(databases, alias=lambda each: each.alias).gauge
    yield gauge("database_read_only", "Whether the server takes no writes", lambda each: each.is_read_only)
    yield gauge("database_connections", "Connections of clients to the server", lambda each: each.connections)
    yield gauge("database_max_connections", "Connections that the server allows", lambda each: each.max_connections)
    yield gauge(
        "database_clock_skew_seconds", "The server's clock ahead of the scraped host's", lambda each: each.clock_skew
    )
    yield gauge(
        "database_oldest_transaction_seconds",
        "Age of the oldest open transaction of the server",
        lambda each: each.oldest_transaction.age if each.oldest_transaction else 0.0,
    )
    yield gauge(
        "migrations_pending",
        "Migrations of this code that the database lacks",
        lambda each: len(each.pending_migrations),
    )
    engines = _Each(
        [each.engine for each in databases if each.engine],
        version=lambda each: each.version or "",
        engine_version=lambda each: each.engine_version or "",
    )
    yield engines.gauge(
        "engine_current",
        "Whether the event log is of the version that this code brings",
        lambda each: each.is_current,
    )


def _queues(log: Queues) -> Iterator[GaugeMetricFamily]:
    gauge = _Each(log.queues, queue=lambda each: each.name).gauge
    yield gauge("ticker_lag_seconds", "Age of the newest tick", lambda each: each.ticker_lag)
    yield gauge("queue_events_per_second", "Rate of events over the last ticks", lambda each: each.events_per_second)
    yield gauge("queue_events_unticked", "Events after the newest tick", lambda each: each.events_after_tick)
    yield gauge("queue_bytes", "Size of the event tables", lambda each: each.bytes)
    yield gauge("queue_retries", "Events that wait to come again; ends at 10000", lambda each: each.retries)
    yield gauge("queue_dead_letters", "Dead letters kept; ends at 10000", lambda each: each.dead_letters)
    yield gauge(
        "queue_new_dead_letters", "Dead letters that are news; ends at 10000", lambda each: each.new_dead_letters
    )
    yield gauge("queue_rotation_age_seconds", "Time since the event tables last rotated", lambda each: each.rotated_ago)
    blocked = [(queue.name, consumer) for queue in log.queues for consumer in queue.waits_for or ()]
    yield _Each(blocked, queue=lambda each: each[0], consumer=lambda each: each[1]).gauge(
        "rotation_blocked", "A rotation that is overdue, by the consumer that it waits for", lambda each: True
    )


def _consumers(log: Queues) -> Iterator[GaugeMetricFamily]:
    consumers = [each for each in log.consumers if each.member is None]
    members = [(each.queue, each.name) for each in log.consumers if each.member is not None]
    labels = {"queue": lambda each: each.queue, "consumer": lambda each: each.name}
    gauge = _Each(consumers, **labels).gauge
    yield gauge(
        "consumer_lag_seconds",
        "How long the first tick after the cursor has waited for the consumer",
        lambda each: each.lag or 0.0,
    )
    yield gauge("consumer_tick_age_seconds", "Age of the consumer's last finished tick", lambda each: each.tick_age)
    yield gauge("consumer_pending_events", "Events after the cursor", lambda each: each.pending)
    yield gauge(
        "consumer_last_seen_seconds",
        "Time since the consumer last took or finished a batch",
        lambda each: each.last_seen,
    )
    yield gauge(
        "consumer_processes",
        "Processes of the consumer on the events database",
        lambda each: None if each.sessions is None else len(each.sessions),
    )
    yield _Each([each for each in consumers if each.is_group], **labels).gauge(
        "group_members", "Members of a cooperative group", lambda each: members.count((each.queue, each.name))
    )


def _tickers(tickers: Tickers) -> Iterator[GaugeMetricFamily]:
    leader = tickers.leader
    leaders = _Each([leader] if leader else [], address=lambda each: each.address or "", pid=lambda each: str(each.pid))
    yield leaders.gauge(
        "ticker_leader", "The ticker that leads, by its session on the events database", lambda each: True
    )
    yield _single("ticker_leads_seconds", "How long it has led", tickers.at - leader.since if leader else None)
    yield _single(
        "ticker_silent_seconds", "Time since the leading ticker's last statement", leader.silent_for if leader else None
    )
    running = tickers.standbys + bool(leader) if tickers.is_visible else None
    yield _single("tickers", "Tickers that run", running)


def _tasks(tasks: Tasks) -> Iterator[GaugeMetricFamily]:
    yield _by(
        "state",
        "tasks",
        "Tasks in the queue: due, or leased to a worker or a later try; ends at 10000",
        {"due": tasks.due, "leased": tasks.leased},
    )
    yield _single("tasks_oldest_due_seconds", "Age of the oldest due task", tasks.oldest_due or 0.0)
    yield _by(
        "result",
        "tasks_finished_last_hour",
        "Tasks that ended within the last hour; ends at 10000",
        {"succeeded": tasks.succeeded, "failed": tasks.failed},
    )
    clusters = None if tasks.clusters is None else len(tasks.clusters)
    yield _single("clusters", "Clusters of task workers", clusters)
    yield _by(
        "schedule",
        "schedule_late_seconds",
        "How long a schedule is overdue",
        {each.name: max(timedelta(), tasks.at - each.next_run) for each in tasks.schedules if each.next_run},
    )


def _outbox(outbox: Outbox) -> Iterator[GaugeMetricFamily]:
    yield _single("outbox_open", "Outbox entries that are not done; ends at 10000", outbox.open)
    yield _single("outbox_unrelayed", "Outbox entries not yet relayed; ends at 10000", outbox.unrelayed)
    yield _single("outbox_given_up", "Outbox entries given up; ends at 10000", outbox.given_up)
    yield _single("outbox_oldest_seconds", "Age of the oldest open entry", outbox.oldest_open or 0.0)


def _ledger(ledger: Ledger) -> Iterator[GaugeMetricFamily]:
    outcomes = _Each(ledger.outcomes, channel=lambda each: each.channel, state=lambda each: each.state)
    yield outcomes.gauge(
        "deliveries_last_hour",
        "Deliveries that began within the last hour, by outcome; ends at 10000",
        lambda each: each.deliveries,
    )
    waiting = _Each(ledger.waiting, channel=lambda each: each.channel)
    yield waiting.gauge("deliveries_waiting", "Notices still to be told; ends at 10000", lambda each: each.deliveries)
    yield waiting.gauge(
        "deliveries_oldest_waiting_seconds",
        "Age of the oldest notice still to be told",
        lambda each: each.oldest or 0.0,
    )
    lines = _Each(ledger.lines, line=lambda each: each.name, channel=lambda each: each.channel)
    yield lines.gauge("line_failures", "Failures in a row of a mail server or webhook", lambda each: each.failures)


def _actions(actions: Actions) -> Iterator[GaugeMetricFamily]:
    yield _single("actions_open", "Operators' actions that are not over; ends at 10000", actions.open)
    yield _single(
        "actions_longest_still_seconds", "How long nothing has come of an open one", actions.longest_still or 0.0
    )


def _problems(problems: list[Problem]) -> GaugeMetricFamily:
    labelled = _Each(
        problems,
        name=lambda each: each.name,
        subject=lambda each: each.subject,
        severity=lambda each: each.severity,
    )
    return labelled.gauge("problem", "What is wrong: see docs/operations.md#<name>", lambda each: True)

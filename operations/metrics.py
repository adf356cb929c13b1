"""Facts and problems in Prometheus' words. The rules and the dashboard in deploy/ are written in these names."""

from collections.abc import Iterator
from datetime import timedelta

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from operations.facts import Facts
from operations.facts.databases import Database
from operations.facts.ledger import Ledger
from operations.facts.outbox import Outbox
from operations.facts.queues import Queues
from operations.facts.tasks import Tasks
from operations.facts.tickers import Tickers
from operations.problems.words import Problem

Row = tuple[tuple[str, ...], float | timedelta | None]


class _Scrape(Collector):
    """One scrape's metrics. What a database did not tell is left out; `stega_database_up` says why."""

    def __init__(self, facts: Facts, problems: list[Problem]) -> None:
        self.facts = facts
        self.problems = problems

    def collect(self) -> Iterator[GaugeMetricFamily]:
        facts = self.facts
        told = {alias: reading.value for alias, reading in facts.databases.items()}
        yield _gauge(
            "database_up",
            "Whether the database answered in time",
            ("alias",),
            [((alias,), database is not None) for alias, database in told.items()],
        )
        yield from _databases([database for database in told.values() if database])
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
        yield _problems(self.problems)


def registry(facts: Facts, problems: list[Problem]) -> CollectorRegistry:
    """A registry of this scrape alone: nothing is kept between scrapes, processes or hosts."""
    scrape = CollectorRegistry(auto_describe=False)
    scrape.register(_Scrape(facts, problems))
    return scrape


def _gauge(name: str, about: str, labels: tuple[str, ...], rows: list[Row]) -> GaugeMetricFamily:
    """Rows without a value are left out; durations become seconds."""
    family = GaugeMetricFamily(f"stega_{name}", about, labels=labels)
    for values, value in rows:
        if value is not None:
            family.add_metric(values, value.total_seconds() if isinstance(value, timedelta) else float(value))
    return family


def _databases(databases: list[Database]) -> Iterator[GaugeMetricFamily]:
    def per_alias(name: str, about: str, value: str) -> GaugeMetricFamily:
        return _gauge(name, about, ("alias",), [((each.alias,), getattr(each, value)) for each in databases])

    yield per_alias("database_read_only", "Whether the server takes no writes", "is_read_only")
    yield per_alias("database_connections", "Connections of clients to the server", "connections")
    yield per_alias("database_max_connections", "Connections that the server allows", "max_connections")
    yield per_alias("database_clock_skew_seconds", "The server's clock ahead of the scraped host's", "clock_skew")
    yield _gauge(
        "database_oldest_transaction_seconds",
        "Age of the oldest open transaction of the server",
        ("alias",),
        [((each.alias,), each.oldest_transaction.age if each.oldest_transaction else 0.0) for each in databases],
    )
    yield _gauge(
        "migrations_pending",
        "Migrations of this code that the database lacks",
        ("alias",),
        [((each.alias,), len(each.pending_migrations)) for each in databases],
    )
    engines = [each.engine for each in databases if each.engine]
    yield _gauge(
        "engine_current",
        "Whether the event log is of the version that this code brings",
        ("version", "engine_version"),
        [((each.version or "", each.engine_version or ""), each.is_current) for each in engines],
    )


def _queues(log: Queues) -> Iterator[GaugeMetricFamily]:
    def per_queue(name: str, about: str, value: str) -> GaugeMetricFamily:
        return _gauge(name, about, ("queue",), [((each.name,), getattr(each, value)) for each in log.queues])

    yield per_queue("ticker_lag_seconds", "Age of the newest tick", "ticker_lag")
    yield per_queue("queue_events_per_second", "Rate of events over the last ticks", "events_per_second")
    yield per_queue("queue_events_unticked", "Events after the newest tick", "events_after_tick")
    yield per_queue("queue_bytes", "Size of the event tables", "bytes")
    yield per_queue("queue_retries", "Events that wait to come again; ends at 10000", "retries")
    yield per_queue("queue_dead_letters", "Dead letters kept; ends at 10000", "dead_letters")
    yield per_queue("queue_new_dead_letters", "Dead letters that are news; ends at 10000", "new_dead_letters")
    yield per_queue("queue_rotation_age_seconds", "Time since the event tables last rotated", "rotated_ago")
    yield _gauge(
        "rotation_blocked",
        "A rotation that is overdue, by the consumer that it waits for",
        ("queue", "consumer"),
        [((each.name, who), 1.0) for each in log.queues for who in each.waits_for or ()],
    )


def _consumers(log: Queues) -> Iterator[GaugeMetricFamily]:
    consumers = [each for each in log.consumers if each.member is None]

    def per_consumer(name: str, about: str, value: str) -> GaugeMetricFamily:
        rows: list[Row] = [((each.queue, each.name), getattr(each, value)) for each in consumers]
        return _gauge(f"consumer_{name}", about, ("queue", "consumer"), rows)

    yield per_consumer("lag_seconds", "Age of the consumer's last finished tick", "lag")
    yield per_consumer("pending_events", "Events after the cursor", "pending")
    yield per_consumer("last_seen_seconds", "Time since the consumer last took or finished a batch", "last_seen")
    yield _gauge(
        "consumer_waiting_seconds",
        "How long the first tick after the cursor has waited",
        ("queue", "consumer"),
        [((each.queue, each.name), each.waiting or 0.0) for each in consumers],
    )
    yield _gauge(
        "consumer_processes",
        "Processes of the consumer on the events database",
        ("queue", "consumer"),
        [((each.queue, each.name), None if each.sessions is None else len(each.sessions)) for each in consumers],
    )
    yield _gauge(
        "group_members",
        "Members of a cooperative group",
        ("queue", "consumer"),
        [
            ((group.queue, group.name), sum(m.member is not None and m.name == group.name for m in log.consumers))
            for group in consumers
            if group.is_group
        ],
    )


def _tickers(tickers: Tickers) -> Iterator[GaugeMetricFamily]:
    leader = tickers.leader
    yield _gauge(
        "ticker_leader",
        "The ticker that leads, by its session on the events database",
        ("address", "pid"),
        [((leader.address or "", str(leader.pid)), 1.0)] if leader else [],
    )
    yield _gauge("ticker_leads_seconds", "How long it has led", (), [((), tickers.at - leader.since)] if leader else [])
    yield _gauge(
        "ticker_silent_seconds",
        "Time since the leading ticker's last statement",
        (),
        [((), leader.silent_for)] if leader else [],
    )
    yield _gauge(
        "tickers", "Tickers that run", (), [((), tickers.standbys + bool(leader))] if tickers.is_visible else []
    )


def _tasks(tasks: Tasks) -> Iterator[GaugeMetricFamily]:
    yield _gauge(
        "tasks",
        "Tasks in the queue: due, or leased to a worker or a later try; ends at 10000",
        ("state",),
        [(("due",), tasks.due), (("leased",), tasks.leased)],
    )
    yield _gauge("tasks_oldest_due_seconds", "Age of the oldest due task", (), [((), tasks.oldest_due or 0.0)])
    yield _gauge(
        "tasks_finished_last_hour",
        "Tasks that ended within the last hour; ends at 10000",
        ("result",),
        [(("succeeded",), tasks.succeeded), (("failed",), tasks.failed)],
    )
    yield _gauge(
        "clusters", "Clusters of task workers", (), [((), None if tasks.clusters is None else len(tasks.clusters))]
    )
    yield _gauge(
        "schedule_late_seconds",
        "How long a schedule is overdue",
        ("schedule",),
        [((each.name,), max(timedelta(), tasks.at - each.next_run)) for each in tasks.schedules if each.next_run],
    )


def _outbox(outbox: Outbox) -> Iterator[GaugeMetricFamily]:
    yield _gauge("outbox_open", "Outbox entries that are not done; ends at 10000", (), [((), outbox.open)])
    yield _gauge("outbox_unrelayed", "Outbox entries not yet relayed; ends at 10000", (), [((), outbox.unrelayed)])
    yield _gauge("outbox_given_up", "Outbox entries given up; ends at 10000", (), [((), outbox.given_up)])
    yield _gauge("outbox_oldest_seconds", "Age of the oldest open entry", (), [((), outbox.oldest_open or 0.0)])


def _ledger(ledger: Ledger) -> Iterator[GaugeMetricFamily]:
    yield _gauge(
        "deliveries_last_hour",
        "Deliveries that began within the last hour, by outcome; ends at 10000",
        ("channel", "state"),
        [((each.channel, each.state), each.deliveries) for each in ledger.outcomes],
    )
    yield _gauge(
        "deliveries_waiting",
        "Notices still to be told; ends at 10000",
        ("channel",),
        [((each.channel,), each.deliveries) for each in ledger.waiting],
    )
    yield _gauge(
        "deliveries_oldest_waiting_seconds",
        "Age of the oldest notice still to be told",
        ("channel",),
        [((each.channel,), each.oldest or 0.0) for each in ledger.waiting],
    )
    yield _gauge(
        "line_failures",
        "Failures in a row of a mail server or webhook",
        ("line", "channel"),
        [((line.name, line.channel), line.failures) for line in ledger.lines],
    )


def _problems(problems: list[Problem]) -> GaugeMetricFamily:
    found: list[Row] = [((each.name, each.subject, each.severity), 1.0) for each in problems]
    return _gauge("problem", "What is wrong: see docs/operations.md#<name>", ("name", "subject", "severity"), found)

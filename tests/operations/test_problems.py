"""Which facts are a problem, and by what name."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import translation

from operations.facts.configuration import Configuration, Finding
from operations.facts.databases import Engine, Transaction
from operations.facts.ledger import Line, PutOff, Waiting
from operations.facts.reading import Trouble
from operations.facts.tasks import Scheduled
from operations.problems import problems
from operations.problems.words import Name, Severity
from stega.pgque.catalogue import NOTIFICATION_WORKER
from tests.operations.facts_of import (
    ACTIONS,
    DATABASE,
    GROUP,
    HOUR,
    LEDGER,
    MEMBER,
    NOW,
    OUTBOX,
    QUEUE,
    QUEUES,
    SECOND,
    TASKS,
    TICKERS,
    WORKER,
    facts,
    session,
)


@pytest.fixture(autouse=True)
def thresholds(settings):
    settings.TICKER_DEAD_SECONDS = 10
    settings.WORKER_BEHIND_SECONDS = 60
    settings.OUTBOX_STUCK_SECONDS = 180
    settings.CLUSTER_STUCK_SECONDS = 60
    settings.ACTION_STUCK_SECONDS = 300
    settings.SCHEDULE_LATE_SECONDS = 300
    settings.DEAD_LETTER_ALERT_SECONDS = 86_400
    settings.OLD_TRANSACTION_SECONDS = 600
    settings.CLOCK_SKEW_SECONDS = 5
    settings.CIRCUIT_FAILURES = 3
    settings.PGQUE_SILENT_MEMBER_SECONDS = 3600
    settings.PGQUE_MAX_RETRIES = QUEUE.max_retries


def log(*, queue=None, consumers=()):
    """The event log with its queue changed, and with consumers changed or added."""
    named = {(each.name, each.member): each for each in (*QUEUES.consumers, *consumers)}
    return replace(QUEUES, queues=(replace(QUEUE, **queue or {}),), consumers=tuple(named.values()))


def leader(**changes):
    return replace(TICKERS, leader=replace(TICKERS.leader, **changes))


def lines(name, channel, *, failures=3, retry_at=NOW + SECOND, waiting=0):
    line = Line(name, channel, failures, "The mail server refused", retry_at)
    return replace(LEDGER, lines=(line,), waiting=(Waiting(channel, waiting, None),))


def configured(*findings, pooled=False, direct=False):
    return Configuration(findings, pooled, direct)


def schedules(**moments):
    changed = {name.replace("_", " "): moment for name, moment in moments.items()}
    return tuple(replace(each, next_run=changed.get(each.name, each.next_run)) for each in TASKS.schedules)


POOLED = replace(DATABASE, alias="events", is_pooled=True)
WITHOUT_ENGINE = replace(DATABASE, alias="events", engine=Engine(None, None, False))
SILENT = replace(MEMBER, last_seen=3 * HOUR)
LATE = schedules(outbox_sweep=NOW - 301 * SECOND)
OLD = Transaction(12, "psql", "app", 601 * SECOND, NOW)


@pytest.mark.parametrize(
    ("spoilt", "name", "subject"),
    [
        ({"default": Trouble.UNREACHABLE}, Name.DEFAULT_DOWN, "default"),
        ({"jobs": Trouble.SILENT}, Name.JOBS_DOWN, "jobs"),
        ({"events": Trouble.UNREACHABLE}, Name.EVENTS_DOWN, "events"),
        ({"events": Trouble.REFUSED}, Name.FACTS_MISSING, "database events"),
        ({"queues": Trouble.UNPREPARED}, Name.FACTS_MISSING, "queues"),
        ({"ledger": Trouble.SILENT}, Name.FACTS_MISSING, "ledger"),
        ({"default": replace(DATABASE, is_read_only=True)}, Name.READ_ONLY, "default"),
        ({"default": replace(DATABASE, pending_migrations=("tickets.0002",))}, Name.MIGRATIONS_PENDING, "default"),
        (
            {"events": replace(DATABASE, alias="events", engine=Engine(None, None, False))},
            Name.VERSION_MISMATCH,
            "events",
        ),
        ({"jobs": replace(DATABASE, alias="jobs", oldest_transaction=OLD)}, Name.OLD_TRANSACTION, "jobs"),
        ({"default": replace(DATABASE, clock_skew=-6 * SECOND)}, Name.CLOCK_SKEW, "default"),
        ({"default": replace(DATABASE, connections=95)}, Name.CONNECTIONS_SHORT, "default"),
        ({"tickers": replace(TICKERS, leader=None)}, Name.TICKER_DEAD, "ticker"),
        ({"tickers": leader(silent_for=11 * SECOND)}, Name.TICKER_DEAD, "ticker"),
        ({"queues": log(queue={"ticker_lag": 71 * SECOND})}, Name.TICKER_DEAD, "ticker"),
        ({"queues": log(queue={"ticker_lag": None})}, Name.TICKER_DEAD, "ticker"),
        ({"queues": log(consumers=[replace(WORKER, sessions=())])}, Name.WORKER_DEAD, NOTIFICATION_WORKER),
        ({"queues": log(consumers=[replace(GROUP, sessions=())])}, Name.WORKER_DEAD, GROUP.name),
        ({"queues": log(consumers=[replace(WORKER, pending=1, lag=61 * SECOND)])}, Name.WORKER_DEAD, WORKER.name),
        (
            {"queues": log(consumers=[replace(WORKER, name="audit", sessions=(), pending=1, lag=HOUR)])},
            Name.WORKER_DEAD,
            "audit",
        ),
        (
            {"queues": log(consumers=[replace(MEMBER, last_seen=3 * HOUR)])},
            Name.MEMBER_SILENT,
            f"{GROUP.name}.{MEMBER.member}",
        ),
        ({"queues": log(queue={"waits_for": ("audit",)})}, Name.ROTATION_BLOCKED, f"{QUEUE.name} audit"),
        ({"queues": log(queue={"max_retries": 5})}, Name.SETTINGS_UNSAFE, "PGQUE_MAX_RETRIES"),
        ({"queues": log(queue={"waits_for": ()})}, Name.ROTATION_BLOCKED, QUEUE.name),
        ({"queues": log(queue={"dead_letters": 3, "new_dead_letters": 1})}, Name.POISON_MESSAGE, QUEUE.name),
        ({"tasks": replace(TASKS, clusters=())}, Name.CLUSTER_DEAD, "qcluster"),
        ({"tasks": replace(TASKS, due=3, oldest_due=61 * SECOND)}, Name.CLUSTER_STUCK, "qcluster"),
        ({"tasks": replace(TASKS, clusters=(session("qcluster", 61 * SECOND),))}, Name.CLUSTER_STUCK, "qcluster"),
        (
            {"tasks": replace(TASKS, schedules=schedules(outbox_sweep=NOW - 301 * SECOND))},
            Name.SCHEDULE_LATE,
            "outbox sweep",
        ),
        ({"tasks": replace(TASKS, schedules=TASKS.schedules[1:])}, Name.SCHEDULE_LATE, TASKS.schedules[0].name),
        ({"outbox": replace(OUTBOX, open=2, oldest_untried=181 * SECOND)}, Name.OUTBOX_STUCK, "outbox"),
        ({"outbox": replace(OUTBOX, failing=2, oldest_open=181 * SECOND)}, Name.OUTBOX_STUCK, "outbox"),
        ({"outbox": replace(OUTBOX, given_up=2, last_given_up_at=NOW - HOUR)}, Name.TASK_GIVEN_UP, "outbox"),
        ({"actions": replace(ACTIONS, open=2, longest_still=301 * SECOND)}, Name.ACTION_STUCK, "actions"),
        ({"ledger": lines("smtp mail:25", "email")}, Name.SMTP_DOWN, "smtp mail:25"),
        ({"ledger": lines("smtp mail:25", "email", retry_at=NOW - HOUR, waiting=1)}, Name.SMTP_DOWN, "smtp mail:25"),
        ({"ledger": replace(LEDGER, put_off=PutOff(3, timedelta(minutes=16)))}, Name.SMTP_DOWN, "email"),
        ({"ledger": lines("slack 0123", "slack")}, Name.SLACK_DOWN, "slack 0123"),
        ({"configuration": configured(Finding("stega.E006", "Short.", "Longer."))}, Name.SETTINGS_UNSAFE, "stega.E006"),
        ({"events": POOLED}, Name.SETTINGS_UNSAFE, "EVENTS_POOLED"),
        ({"configuration": configured(pooled=True)}, Name.SETTINGS_UNSAFE, "EVENTS_LISTEN_DATABASE_URL"),
    ],
)
def test_each_fault_is_one_problem_by_name(spoilt, name, subject):
    found = problems(facts(**spoilt))

    assert [(problem.name, problem.subject) for problem in found] == [(name, subject)]
    assert found[0].text
    assert found[0].remedy


@pytest.mark.parametrize(
    "fine",
    [
        {},
        {"jobs": replace(DATABASE, alias="jobs", oldest_transaction=replace(OLD, age=HOUR / 60))},
        {"tickers": replace(TICKERS, is_visible=False, leader=None)},
        {"tickers": leader(silent_for=None)},
        {"queues": log(queue={"ticker_lag": 65 * SECOND})},
        {"queues": log(queue={"ticker_lag": HOUR, "is_paused": True})},
        {"queues": log(queue={"dead_letters": 3})},
        {"queues": log(consumers=[replace(WORKER, sessions=None)])},
        {"queues": log(consumers=[replace(WORKER, name="audit", sessions=())])},
        {"queues": log(consumers=[replace(WORKER, pending=100, lag=59 * SECOND)])},
        {"queues": log(consumers=[replace(WORKER, pending=0, lag=HOUR)])},
        {"tasks": replace(TASKS, due=3, oldest_due=SECOND)},
        {"tasks": replace(TASKS, clusters=(session("qcluster", None),))},
        {"tasks": replace(TASKS, clusters=None)},
        {"tasks": replace(TASKS, clusters=(session("qcluster", HOUR), session("qcluster")))},
        {"tasks": replace(TASKS, schedules=(*TASKS.schedules, Scheduled("another's", "a.b", NOW - HOUR)))},
        {"outbox": replace(OUTBOX, open=2, oldest_open=179 * SECOND, oldest_untried=179 * SECOND)},
        {"outbox": replace(OUTBOX, given_up=2, last_given_up_at=NOW - timedelta(days=2))},
        {"actions": replace(ACTIONS, open=2, longest_still=299 * SECOND)},
        {"ledger": replace(LEDGER, put_off=PutOff(2, HOUR))},
        {"ledger": replace(LEDGER, put_off=PutOff(30, timedelta(minutes=14)))},
        {"ledger": lines("smtp mail:25", "email", failures=2)},
        {"ledger": lines("slack 0123", "slack", retry_at=None)},
        {"ledger": lines("smtp mail:25", "email", retry_at=NOW - HOUR)},
        {"events": POOLED, "configuration": configured(pooled=True, direct=True)},
    ],
)
def test_what_is_no_fault_is_no_problem(fine):
    assert problems(facts(**fine)) == []


def test_a_schedule_is_late_by_the_clock_of_the_database_that_runs_it():
    ahead = replace(TASKS, at=NOW + 2 * HOUR)

    found = problems(facts(tasks=ahead))

    assert {problem.name for problem in found} == {Name.SCHEDULE_LATE}


def test_every_name_is_told_by_some_fact():
    rows = test_each_fault_is_one_problem_by_name.pytestmark[0].args[1]

    assert {name for _, name, _ in rows} == set(Name)


def test_an_outbox_whose_tasks_fail_asks_for_their_errors_and_not_for_a_cluster():
    fails = replace(OUTBOX, open=3, failing=2, oldest_open=181 * SECOND, oldest_untried=SECOND)

    (found,) = problems(facts(outbox=fails))

    assert found.severity == Severity.WARNING
    assert "fail and come again: 2" in found.text
    assert "last errors" in found.remedy


def test_entries_that_wait_beside_failing_ones_are_counted_alone():
    waits = replace(OUTBOX, open=3, failing=2, oldest_open=600 * SECOND, oldest_untried=181 * SECOND)

    (found,) = problems(facts(outbox=waits))

    assert found.severity == Severity.CRITICAL
    assert "entries wait: 1, the first for 181 s" in found.text


def test_a_database_that_is_down_is_one_problem_and_not_one_per_source():
    away = dict.fromkeys(["events", "queues", "tickers"], Trouble.SILENT)

    assert [problem.name for problem in problems(facts(**away))] == [Name.EVENTS_DOWN]


@pytest.mark.parametrize("source", ["queues", "tickers"])
@pytest.mark.parametrize(
    ("trouble", "severity"), [(Trouble.SILENT, Severity.CRITICAL), (Trouble.REFUSED, Severity.WARNING)]
)
def test_tables_of_events_that_give_no_answer_are_critical(source, trouble, severity):
    (found,) = problems(facts(**{source: trouble}))

    assert (found.name, found.severity) == (Name.FACTS_MISSING, severity)


@pytest.mark.parametrize("source", ["queues", "tickers", "tasks", "outbox", "ledger", "actions", "events"])
def test_what_is_missing_is_told_in_words_and_not_in_ours(source):
    with translation.override("pt-br"):
        told = [problems(facts(**{source: trouble}))[0].text for trouble in Trouble]

    ours = [source + ":", f": {source}", "database ", *(f"({trouble})" for trouble in Trouble)]
    assert [word for word in ours for text in told if word in text] == []


def test_what_is_missing_is_called_as_its_page_is():
    told = {source: problems(facts(**{source: Trouble.SILENT}))[0].text for source in ("ledger", "actions")}

    assert "did not tell about: Deliveries (" in told["ledger"]
    assert "did not tell about: Record of actions (" in told["actions"]


@pytest.mark.parametrize("changes", [{}, {"pid": 0}], ids=["open", "prepared"])
def test_an_old_transaction_is_told_with_its_own_database(changes):
    """A server may hold several, and is asked by the alias of any."""
    of_events = replace(OLD, database="stega_events", **changes)

    found = problems(facts(default=replace(DATABASE, oldest_transaction=of_events)))

    assert "On the default server a transaction of psql" in found[0].text
    assert "in the database stega_events has been open" in found[0].text


def test_critical_problems_come_first():
    spoilt = {"queues": log(queue={"new_dead_letters": 1}), "tickers": replace(TICKERS, leader=None)}

    found = problems(facts(**spoilt))

    assert [problem.severity for problem in found] == [Severity.CRITICAL, Severity.WARNING]


def test_a_transaction_of_a_server_that_all_share_is_one_problem():
    shared = {
        alias: replace(DATABASE, alias=alias, oldest_transaction=replace(OLD, age=OLD.age + number * SECOND))
        for number, alias in enumerate(("default", "jobs"))
    }

    assert [problem.subject for problem in problems(facts(**shared))] == ["default"]


def test_two_transactions_of_two_servers_are_two_problems():
    apart = {
        alias: replace(DATABASE, alias=alias, oldest_transaction=replace(OLD, began=NOW - number * SECOND))
        for number, alias in enumerate(("default", "jobs"))
    }

    assert [problem.subject for problem in problems(facts(**apart))] == ["default", "jobs"]


def test_a_prepared_transaction_is_ended_by_its_name_and_not_by_a_process():
    left = replace(OLD, pid=0, application="left")

    found = problems(facts(default=replace(DATABASE, oldest_transaction=left)))

    assert "rollback prepared 'left'" in found[0].remedy


def test_problems_are_told_in_the_readers_language():
    spoilt = facts(tickers=replace(TICKERS, leader=None))

    with translation.override("pt-br"):
        told = problems(spoilt)[0].text

    assert told != problems(spoilt)[0].text

"""Who leads, and what operators are told, where a pooler stands before the event log."""

import signal
from collections import Counter

import pytest
from django.db import connections

from stega.pgque import client
from stega.pgque.publishing import event_key, publish
from tests.factories import make_user
from tests.processes.test_faults import (
    PROCESSES,
    test_a_ticker_takes_over_from_a_killed_one,  # noqa: F401 - told again
)
from tests.support.processes import manage
from tests.support.waiting import wait_until

ALONE = {"EVENTS_LISTEN_DATABASE_URL": "", "EVENTS_POOLED": "1"}


def advisory_locks():
    with connections["events"].cursor() as cursor:
        cursor.execute("select count(*) from pg_locks where locktype = 'advisory'")
        return cursor.fetchone()[0]


def test_a_leader_whose_own_session_was_cut_or_another_leads_and_ticks_go_on(start, mailbox, customer):
    tickers = [start("pgque_ticker", saying="leads"), start("pgque_ticker", saying="stands by")]
    start("notification_worker")
    said = [len(ticker.output) for ticker in tickers]
    with connections["events"].cursor() as cursor:
        cursor.execute("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'")

    wait_until(lambda: any("leads" in ticker.output[at:] for ticker, at in zip(tickers, said, strict=True)), timeout=10)
    welcome(customer)

    wait_until(lambda: mailbox.addresses() == [customer.email], timeout=10)
    assert all(ticker.is_running() for ticker in tickers)


@pytest.mark.parametrize("given", [{}, ALONE])
def test_two_of_each_tell_each_person_once_and_leave_no_lock_behind(start, mailbox, given):
    people = [make_user(f"customer-{number}") for number in range(20)]
    processes = [start(command, **given) for command in ("pgque_ticker", "notification_worker") * 2]
    for person in people:
        welcome(person)
    wait_until(lambda: len(mailbox.received) >= len(people), timeout=30)

    for process in processes:
        process.signal(signal.SIGKILL)

    wait_until(lambda: advisory_locks() == 0, timeout=10)
    assert Counter(mailbox.addresses()) == {person.email: 1 for person in people}


def welcome(person):
    payload = {"user_id": person.pk, "email": person.email, "display_name": person.display_name}
    publish("ticket.welcome", payload, event_key("ticket.welcome", person.pk))


@pytest.fixture
def told(env):
    """What `doctor` tells, and its exit code."""

    def told(**changes):
        with manage("doctor", env={**env, **changes}) as doctor:
            return doctor.wait(), doctor.output

    return told


def test_the_doctor_takes_no_process_for_dead_that_the_pooler_hides(start, told):
    for command, saying in PROCESSES.items():
        start(command, saying=saying)

    wait_until(lambda: client.queue_info()[0]["last_tick_id"] > 1, timeout=20)

    code, said = told()

    assert code == 0, said


def test_the_doctor_names_the_processes_that_died_though_the_pool_keeps_their_sessions(start, told):
    processes = [start(command, saying=saying) for command, saying in PROCESSES.items() if command != "qcluster"]
    wait_until(lambda: client.queue_info()[0]["last_tick_id"] > 1, timeout=20)
    for process in processes:
        process.signal(signal.SIGKILL)
        process.wait()
    wait_until(lambda: not names() & {"pgque_ticker", "notification_worker", "sla_breach_dispatcher"}, timeout=10)

    code, said = told()

    assert code == 1
    assert said.count("worker_dead") == 2
    assert "ticker_dead" in said


def names():
    """Those of the sessions on `events` but this one."""
    with connections["events"].cursor() as cursor:
        cursor.execute(
            "select application_name from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        return {row[0] for row in cursor.fetchall()}


@pytest.mark.parametrize(
    ("given", "named"),
    [(ALONE, "EVENTS_LISTEN_DATABASE_URL"), (ALONE | {"EVENTS_POOLED": "0"}, "EVENTS_POOLED does not say so")],
)
def test_the_doctor_names_the_setting_that_is_missing(told, given, named):
    code, said = told(**given)

    assert code == 1
    assert "settings_unsafe" in said
    assert named in said


@pytest.mark.parametrize("command", PROCESSES)
def test_a_process_that_was_not_told_of_the_pooler_says_which_setting_is_missing(env, command):
    with manage(command, env={**env, **ALONE, "EVENTS_POOLED": "0"}) as process:
        code = process.wait()
        said = process.output

    assert code == 1
    assert "EVENTS_POOLED" in said
    assert "Traceback" not in said

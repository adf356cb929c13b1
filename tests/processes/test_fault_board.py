"""Each fault, made with real processes and servers, is told by its name wherever people and machines look."""

import json
import os
import signal
import time
import urllib.request
import uuid
from contextlib import contextmanager
from io import StringIO
from urllib.error import HTTPError

import pytest
from django.core.management import call_command
from django.db import connections, transaction

from operations import facts
from operations.facts import reading
from operations.problems import problems
from stega import outbox
from stega.pgque import client
from stega.pgque.catalogue import NOTIFICATION_WORKER
from stega.pgque.publishing import publish
from stega.processes.process import name_connections
from stega.processes.startup import VARIABLES
from stega.tasks import schedules
from tests.support import processes, servers
from tests.support.alerts import firing, problems_in
from tests.support.event_log import tick
from tests.support.sessions import Session
from tests.support.waiting import wait_until

PATIENCE = 30
"""Seconds within which everybody says so."""

THRESHOLDS = {
    "FACTS_SECONDS": 0.9,
    "TICKER_DEAD_SECONDS": 2,
    "WORKER_BEHIND_SECONDS": 3,
    "OUTBOX_STUCK_SECONDS": 2,
    "CLUSTER_STUCK_SECONDS": 2,
    "OLD_TRANSACTION_SECONDS": 1,
    "PGQUE_MAINTENANCE_SECONDS": 0.3,
    "PGQUE_ROTATE_SECONDS": 0.2,
    "CIRCUIT_FAILURES": 1,
    "CIRCUIT_PAUSE_SECONDS": 0.5,
    "CIRCUIT_LONGEST_PAUSE_SECONDS": 0.5,
}


@pytest.fixture
def env(env, settings):
    """Everybody, the test's own process too, calls a fault a problem after seconds.

    The connections of this process get its own name: a command that an earlier test called may have left another.
    """
    hang_up()
    name_connections("stega", VARIABLES)
    for name, value in THRESHOLDS.items():
        setattr(settings, name, value)
    settings.DEBUG = True
    env |= {name: str(value) for name, value in THRESHOLDS.items()}
    env |= {"HEALTHY_SECONDS": "30", "TASK_TIMEOUT_SECONDS": "40", "TASK_RETRY_SECONDS": "60"}
    yield env
    hang_up()


def hang_up():
    """Close the connections by which this process asks for facts."""
    for caller in reading._callers.values():
        if not caller.stuck:
            caller.call(connections.close_all, seconds=5)


class Site:
    """The probes of a web process."""

    def __init__(self, address):
        self.address = address

    def get(self, path):
        """Status and text of the page, and how long it took."""
        begin = time.monotonic()
        try:
            with urllib.request.urlopen(self.address + path, timeout=10) as response:
                status, text = response.status, response.read().decode()
        except HTTPError as error:
            with error:
                status, text = error.code, error.read().decode()
        return status, text, time.monotonic() - begin

    def readyz(self):
        """The checks, which the status must agree with."""
        status, text, _ = self.get("/readyz")
        checks = json.loads(text)["checks"]
        assert (status == 200) == (set(checks.values()) == {"ok"})
        return checks


class Stega(Site):
    """All of it, running; one attribute per process."""

    def __init__(self, start, address):
        super().__init__(address)
        self.start = start
        self.cluster = start("qcluster", saying="ready for work")
        self.ticker = start("pgque_ticker", saying="leads")
        self.worker = start("notification_worker")
        self.members = start("sla_breach_worker")

    def wait_until_told(self, problem):
        self._wait(lambda told: all(problem in seen for seen in told.values()))

    def wait_until_quiet(self):
        self._wait(lambda told: not any(told.values()))

    def _wait(self, is_so):
        """Fails with what each place said last."""
        last = {}

        def look():
            last.update(self.told())
            return is_so(last)

        try:
            wait_until(look, timeout=PATIENCE, interval=0.2)
        except AssertionError as error:
            raise AssertionError(f"after {PATIENCE} s they say {last}") from error

    def told(self):
        """What each place says is wrong: names with their subjects."""
        _, scrape, _ = self.get("/metrics")
        return {
            "/metrics": problems_in(scrape),
            "alerts": firing(scrape),
            "doctor": doctor(),
            "the console's source": {(each.name, each.subject) for each in problems(facts.gather())},
        }


def doctor():
    out = StringIO()
    try:
        call_command("doctor", "--json", stdout=out)
        code = 0
    except SystemExit as ended:
        code = ended.code
    document = json.loads(out.getvalue())
    assert code == (0 if document["ok"] else 1)
    return {(check["name"], each["subject"]) for check in document["checks"] for each in check["problems"]}


@pytest.fixture
def stega(start, site):
    schedules.install()
    return Stega(start, site)


def welcome(customer):
    """An event that is told by a mail."""
    payload = {"user_id": customer.pk, "email": customer.email, "display_name": "Customer"}
    publish("ticket.welcome", payload, uuid.uuid4())


@contextmanager
def ticker_dead(stega, queue, **_):
    stega.ticker.kill()
    try:
        yield ("ticker_dead", "ticker")
    finally:
        stega.ticker = stega.start("pgque_ticker", saying="leads")


@contextmanager
def worker_dead(stega, queue, **_):
    stega.worker.kill()
    try:
        yield ("worker_dead", NOTIFICATION_WORKER)
    finally:
        stega.worker = stega.start("notification_worker")


@contextmanager
def rotation_blocked(stega, queue, customer, **_):
    client.subscribe(queue, "audit")
    welcome(customer)
    tick(queue)
    client.set_queue_config(queue, "rotation_period", "0.3 seconds")
    try:
        yield ("rotation_blocked", f"{queue} audit")
    finally:
        client.set_queue_config(queue, "rotation_period", "2 hours")
        client.unsubscribe(queue, "audit")


@contextmanager
def smtp_down(stega, queue, mailbox, customer):
    mailbox.rcpt = lambda address: "421 4.3.0 out of order"
    welcome(customer)
    try:
        yield ("smtp_down", f"smtp {mailbox.host}:{mailbox.port}")
    finally:
        mailbox.rcpt = lambda address: None


@contextmanager
def database_down(alias):
    connections[alias].close()
    servers.by_alias[alias].stop()
    try:
        yield (f"{alias}_down", alias)
    finally:
        servers.by_alias[alias].start()


def events_down(stega, queue, **_):
    return database_down("events")


def jobs_down(stega, queue, **_):
    return database_down("jobs")


@contextmanager
def outbox_stuck(stega, queue, customer, **_):
    with transaction.atomic():
        outbox.enqueue("send_welcome_notification", customer.pk)
    try:
        yield ("outbox_stuck", "outbox")
    finally:
        with connections["default"].cursor() as cursor:
            cursor.execute("update stega_outboxentry set created_at = now() - interval '1 hour'")
        outbox.sweep()


@contextmanager
def poison_message(stega, queue, **_):
    client.insert_event(queue, "nobody.knows", {}, str(uuid.uuid4()))
    try:
        yield ("poison_message", queue)
    finally:
        with connections["events"].cursor() as cursor:
            cursor.execute("select pgque.dlq_purge(%s, interval '0')", [queue])


@contextmanager
def cluster_stuck(stega, queue, **_):
    os.killpg(stega.cluster.pid, signal.SIGSTOP)
    try:
        yield ("cluster_stuck", "qcluster")
    finally:
        os.killpg(stega.cluster.pid, signal.SIGCONT)


@contextmanager
def cluster_dead(stega, queue, **_):
    stega.cluster.kill()
    try:
        yield ("cluster_dead", "qcluster")
    finally:
        stega.cluster = stega.start("qcluster", saying="ready for work")


@contextmanager
def old_transaction(stega, queue, **_):
    with Session(servers.events.url(str(connections["events"].settings_dict["NAME"]))) as forgotten:
        forgotten.rows("select 1")
        yield ("old_transaction", "events")


FAULTS = [
    ticker_dead,
    worker_dead,
    rotation_blocked,
    smtp_down,
    outbox_stuck,
    poison_message,
    cluster_stuck,
    cluster_dead,
    old_transaction,
    events_down,
    jobs_down,
]


@pytest.mark.long
@pytest.mark.timeout(400)
def test_every_fault_is_told_by_name_everywhere_and_is_quiet_again(stega, mailbox, customer, settings, subtests):
    stega.wait_until_quiet()

    for fault in FAULTS:
        with subtests.test(fault.__name__):
            with fault(stega, settings.PGQUE_QUEUE, mailbox=mailbox, customer=customer) as problem:
                stega.wait_until_told(problem)
                if problem[0].endswith("_down") and problem[0] != "smtp_down":
                    wait_until(lambda alias=problem[1]: stega.readyz()[alias] == "unreachable", timeout=PATIENCE)

            stega.wait_until_quiet()
            wait_until(lambda: set(stega.readyz().values()) == {"ok"}, timeout=PATIENCE)


@pytest.mark.parametrize("alias", ["default", "jobs", "events"])
def test_a_database_that_hangs_costs_a_scrape_less_than_two_seconds_and_is_named(env, alias):
    process, address = processes.web(env)
    with process:
        site = Site(address)
        assert site.get("/readyz")[0] == 200

        with servers.hanging(servers.by_alias[alias]):
            answers = [site.get(path) for path in ("/metrics", "/metrics", "/readyz", "/livez")]
            wait_until(lambda: site.readyz()[alias] == "silent", timeout=PATIENCE)

        assert max(took for _, _, took in answers) < 2
        assert (f"{alias}_down", alias) in firing(answers[0][1])
        assert f'stega_database_up{{alias="{alias}"}} 0.0' in answers[1][1]
        assert answers[3][0] == 200
        wait_until(lambda: set(site.readyz().values()) == {"ok"}, timeout=PATIENCE)

"""What machines ask, and who may."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from prometheus_client.parser import text_string_to_metric_families

from operations import facts, probes
from operations.facts import reading
from stega.models import OutboxEntry
from stega.pgque import client as event_log
from stega.tasks import schedules
from tests.support import servers
from tests.support.event_log import tick
from tests.support.sessions import Session
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

TABLES = {
    "default": ("stega_outboxentry", servers.app),
    "jobs": ("django_q_ormq", servers.jobs),
    "events": ("pgque.queue", servers.events),
}
STRANGER = {"REMOTE_ADDR": "203.0.113.9"}


def checks(response):
    return response.json()["checks"]


def samples(response):
    """Metric name -> its samples of one scrape."""
    families = text_string_to_metric_families(response.content.decode())
    return {family.name: family.samples for family in families}


@pytest.fixture
def jobs_down():
    connections["jobs"].close()
    servers.jobs.stop()
    yield
    servers.jobs.start()


def test_livez_asks_no_database(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        response = client.get("/livez")

    assert response.status_code == 200


def test_readyz_names_everything_that_is_well(client):
    response = client.get("/readyz")

    assert response.status_code == 200
    assert checks(response) == dict.fromkeys(["default", "jobs", "events", "migrations", "engine", "queues"], "ok")


def test_readyz_names_the_database_that_is_down_and_nothing_that_would_help_a_stranger(client, jobs_down):
    response = client.get("/readyz", **STRANGER)

    assert response.status_code == 503
    assert checks(response) == {
        "default": "ok",
        "jobs": "unreachable",
        "events": "ok",
        "migrations": "unknown",
        "engine": "ok",
        "queues": "ok",
    }
    told = response.content.decode()
    assert [word for word in ("127.0.0.1", "localhost", "connection", "postgresql", "refused") if word in told] == []


def test_people_are_still_served_while_jobs_is_down(client, jobs_down):
    response = client.get("/readyz/web")

    assert response.status_code == 200
    assert checks(response) == {"default": "ok", "migrations": "ok"}


def test_readyz_names_a_missing_migration(client):
    with connections["default"].cursor() as cursor:
        cursor.execute("delete from django_migrations where app = 'stega' and name = '0001_initial'")
    try:
        response = client.get("/readyz")
    finally:
        with connections["default"].cursor() as cursor:
            cursor.execute("insert into django_migrations (app, name, applied) values ('stega', '0001_initial', now())")

    assert response.status_code == 503
    assert checks(response)["migrations"] == "pending"


def test_readyz_names_an_engine_of_another_version(client, monkeypatch):
    monkeypatch.setattr("stega.pgque.bootstrap.engine_is_current", lambda: False)

    assert checks(client.get("/readyz"))["engine"] == "mismatch"


@pytest.fixture
def facts_in_time(settings, monkeypatch):
    """Facts are asked on threads of their own, in limited time; no answer of before serves, no connection stays."""
    settings.FACTS_SECONDS = 0.9
    monkeypatch.setattr(probes, "_latest", probes._Shared().latest)
    yield
    for caller in reading._callers.values():
        caller.call(connections.close_all, seconds=5)


def test_readyz_names_tables_of_the_event_log_that_a_lock_holds_up(client, queue, facts_in_time):
    database = str(connections["events"].settings_dict["NAME"])

    with Session(servers.events.url(database)) as holder:
        holder.rows("lock table pgque.queue in access exclusive mode")
        response = client.get("/readyz")

    assert response.status_code == 503
    assert (checks(response)["events"], checks(response)["queues"]) == ("ok", "silent")


@pytest.mark.parametrize("alias", ["default", "jobs", "events"])
def test_readyz_takes_no_database_for_silent_while_somebody_else_waits_for_its_tables(
    client, queue, facts_in_time, alias
):
    table, server = TABLES[alias]

    with Session(server.url(str(connections[alias].settings_dict["NAME"]))) as holder, ThreadPoolExecutor() as pool:
        holder.rows(f"lock table {table} in access exclusive mode")
        scrape = pool.submit(facts.gather, 20.0)
        wait_until(lambda: holder.value("select exists (select from pg_locks where not granted)"), timeout=10)
        response = client.get("/readyz")
        is_first = not scrape.done()
        holder.rows("rollback")

    assert is_first
    assert checks(response)[alias] == "ok"


def test_a_probe_is_answered_whatever_host_it_names_and_without_tls(client, settings):
    settings.SECURE_SSL_REDIRECT = True

    assert client.get("/readyz", headers={"host": "10.1.2.3:8000"}).status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_a_probe_takes_no_posts(client, path):
    assert client.post(path).status_code == 405


@pytest.mark.parametrize(
    ("token", "request_of", "status"),
    [
        ("", {}, 200),
        ("", {"REMOTE_ADDR": "::1"}, 200),
        ("", STRANGER, 403),
        ("", {"headers": {"x-forwarded-for": "203.0.113.9"}}, 403),
        ("", {"headers": {"x-forwarded-proto": "https"}}, 403),
        ("", {"headers": {"x-forwarded-host": "help.example.com"}}, 403),
        ("", {"headers": {"x-real-ip": "203.0.113.9"}}, 403),
        ("", {"headers": {"forwarded": "for=203.0.113.9"}}, 403),
        ("", {"headers": {"via": "1.1 proxy"}}, 403),
        ("", {"REMOTE_ADDR": ""}, 403),
        ("s3cret", {}, 401),
        ("s3cret", {"headers": {"authorization": "Bearer wrong"}}, 401),
        ("s3cret", {"headers": {"authorization": "Bearer s3cré"}}, 401),
        ("s3cret", {"headers": {"authorization": "Bearer s3cret"}, **STRANGER}, 200),
    ],
)
def test_metrics_are_for_the_holder_of_the_token_or_this_machine(client, settings, token, request_of, status):
    settings.DEBUG = False
    settings.STEGA_METRICS_TOKEN = token

    assert client.get("/metrics", **request_of).status_code == status


@pytest.mark.parametrize(("token", "status"), [("", 403), ("s3cret", 200)])
def test_behind_a_proxy_that_says_nothing_of_itself_metrics_are_for_the_holder_of_the_token(
    client, settings, token, status
):
    settings.DEBUG, settings.STEGA_BEHIND_PROXY, settings.STEGA_METRICS_TOKEN = False, True, token

    assert client.get("/metrics", headers={"authorization": f"Bearer {token}"}).status_code == status


@pytest.mark.parametrize(
    ("accept", "format_of"),
    [
        ("text/plain;version=x", "text/plain"),
        ("text/plain;version=", "text/plain"),
        ("application/openmetrics-text;version=x.y", ""),
        ("application/openmetrics-text;version=1.0.0;escaping=none", ""),
        ("application/openmetrics-text;version=1.0.0", "application/openmetrics-text"),
        ("application/openmetrics-text;version=9.9.9", ""),
        ("nonsense;;=;,", "text/plain"),
        ("text/plain;version=1.0.0;escaping=no-such", ""),
        ("é", "text/plain"),
    ],
)
def test_a_scrape_is_answered_in_some_format_whatever_it_accepts(client, accept, format_of):
    response = client.get("/metrics", headers={"accept": accept})

    assert response.status_code == 200
    assert response["Content-Type"].startswith(format_of)
    assert b"stega_database_up" in response.content


def test_a_scrape_tells_of_queues_and_problems_by_name(client, queue):
    schedules.install()
    event_log.subscribe(queue, "audit")

    told = samples(client.get("/metrics"))

    assert {sample.labels["alias"]: sample.value for sample in told["stega_database_up"]} == {
        "default": 1,
        "jobs": 1,
        "events": 1,
    }
    assert queue in {sample.labels["queue"] for sample in told["stega_ticker_lag_seconds"]}
    assert "audit" in {sample.labels["consumer"] for sample in told["stega_consumer_pending_events"]}
    assert {"ticker_dead", "cluster_dead"} <= {sample.labels["name"] for sample in told["stega_problem"]}


def test_a_scrape_goes_on_without_the_database_that_is_down(client, jobs_down):
    response = client.get("/metrics")

    told = samples(response)
    assert response.status_code == 200
    assert {sample.labels["alias"]: sample.value for sample in told["stega_database_up"]}["jobs"] == 0
    assert "jobs_down" in {sample.labels["name"] for sample in told["stega_problem"]}
    assert told["stega_outbox_open"]
    assert "stega_tasks" not in told


def test_no_payload_and_no_secret_is_in_a_scrape(client, queue, settings):
    settings.STEGA_METRICS_TOKEN = "token-of-the-scrape"
    OutboxEntry.objects.create(key="1" * 32, task="x", args=["payload-of-the-outbox"], last_error="words-of-an-error")
    event_log.subscribe(queue, "audit")
    event_log.insert_event(queue, "ticket.welcome", {"body": "payload-of-the-event"}, "")
    tick(queue)
    batch = event_log.next_batch(queue, "audit")
    for event in event_log.batch_events(batch, 10):
        event_log.event_dead(batch, event, "reason-of-a-dead-letter")
    event_log.ack(batch)

    text = client.get("/metrics", headers={"authorization": "Bearer token-of-the-scrape"}).content.decode()

    assert "stega_problem" in text
    secrets = [settings.SECRET_KEY, settings.STEGA_METRICS_TOKEN, "payload-of", "words-of", "reason-of", "postgresql:"]
    assert [secret for secret in secrets if secret in text] == []


def test_answers_are_plain_json(client):
    assert json.loads(client.get("/readyz").content)["ready"] is True

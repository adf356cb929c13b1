"""What the operators' commands print, and their exit codes."""

import json
import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connections

from operations.problems.words import Name
from stega.pgque import client
from stega.pgque.bootstrap import bootstrap
from stega.tasks import schedules
from tests.support import servers
from tests.support.event_log import tick
from tests.support.processes import ROOT, environment

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def run(command, *arguments):
    """What the command prints, and its exit code."""
    out = StringIO()
    try:
        call_command(command, *arguments, stdout=out)
    except SystemExit as ended:
        return out.getvalue(), ended.code
    return out.getvalue(), 0


@pytest.fixture
def prepared(transactional_db):
    schedules.install()
    bootstrap(lambda line: None)


def test_status_shows_queues_consumers_and_the_ticker(prepared, queue):
    client.subscribe(queue, "audit")
    client.insert_event(queue, "ticket.welcome", {}, "")
    tick(queue)

    text, code = run("pgque_status")

    assert code == 0
    assert "no ticker leads" in text
    assert [line for line in text.splitlines() if line.startswith(queue) and "audit" in line]


def test_status_is_one_json_document_with_durations_in_seconds(prepared, queue):
    client.subscribe(queue, "audit")

    document = json.loads(run("pgque_status", "--json")[0])

    assert document["trouble"] is None
    (told,) = [each for each in document["consumers"] if each["queue"] == queue]
    assert isinstance(told["last_seen"], float)
    assert told["processes"] == 0


def test_doctor_names_each_check_and_the_remedy_of_each_problem(prepared):
    text, code = run("doctor")

    assert code == 1
    assert all(name in text for name in Name)
    assert "ok        jobs_down" in text
    assert "ticker_dead (ticker): No ticker leads" in text
    assert "python manage.py pgque_ticker" in text


def test_doctor_is_content_when_nothing_is_wrong(prepared, monkeypatch, settings):
    settings.DEBUG = True
    monkeypatch.setattr("operations.management.commands.doctor.problems", lambda facts: [])

    text, code = run("doctor")

    assert (code, text.splitlines()[-1]) == (0, "0 problems")


def test_doctor_tells_json(prepared):
    document = json.loads(run("doctor", "--json")[0])

    assert document["ok"] is False
    assert [check["name"] for check in document["checks"]] == list(Name)
    (ticker,) = [check for check in document["checks"] if check["name"] == "ticker_dead"]
    assert ticker["problems"][0]["remedy"]


def test_doctor_goes_on_when_a_database_is_down(prepared):
    connections["events"].close()
    servers.events.stop()
    try:
        text, code = run("doctor")
    finally:
        servers.events.start()

    assert code == 1
    assert "events_down (events): The events database cannot be reached." in text
    assert "ok        jobs_down" in text


def test_doctor_sees_an_engine_file_that_is_not_what_its_sources_make(prepared, settings, monkeypatch):
    settings.PGQUE_ENGINE = "builtin"
    monkeypatch.setattr("stega.pgque.bootstrap.is_built", lambda: False)

    assert "version_mismatch (vendor/pgque)" in run("doctor")[0]


def test_doctor_tells_what_the_system_checks_find(prepared, settings):
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "timeout": 60, "retry": 50}

    text, _ = run("doctor")

    assert text.count("settings_unsafe (stega.E003)") == 1


def test_what_django_q_says_of_the_lease_is_left_to_the_doctor():
    command = [sys.executable, "manage.py", "doctor"]

    ended = subprocess.run(command, env=environment(TASK_RETRY_SECONDS=10), cwd=ROOT, capture_output=True, text=True)

    assert ended.stderr == ""
    assert ended.stdout.count("Set TASK_TIMEOUT_SECONDS below TASK_RETRY_SECONDS.") == 1

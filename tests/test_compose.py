"""What compose.yml and Dockerfile promise, read without a container engine."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from stega.database import vanishing
from stega.processes.procfile import commands

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "compose.yml").read_text())
SERVICES = COMPOSE["services"]
DATABASES = {"db-app": 55432, "db-jobs": 55433, "db-events": 55434}
ONE_SHOT = {"migrate", "bootstrap"}
PROCESSES = {
    "web": "web",
    "tasks": "task-worker",
    "ticker": "ticker",
    "notifications": "notification-worker",
    "sla": "sla-breach-worker",
}
EXAMPLE = {line.split("=")[0] for line in (ROOT / ".env.example").read_text().splitlines() if re.match(r"\w+=", line)}


def test_the_services_are_the_databases_the_preparation_and_the_processes():
    assert set(SERVICES) == {*DATABASES, *ONE_SHOT, *PROCESSES.values()}


def test_every_process_runs_the_command_of_the_procfile():
    everywhere = {"127.0.0.1:$PORT": "0.0.0.0:8000"}

    local = {
        PROCESSES[name]: [everywhere.get(word, word) for word in shlex.split(command)]
        for name, command in commands(ROOT / "Procfile", {}).items()
    }

    assert {name: SERVICES[name]["command"] for name in PROCESSES.values()} == local


@pytest.mark.parametrize(("name", "port"), DATABASES.items())
def test_each_database_is_a_healthy_postgresql_of_its_own(name, port):
    service = SERVICES[name]

    assert service["image"] == "postgres:17-alpine"
    assert service["ports"] == [f"127.0.0.1:{port}:5432"]
    assert "pg_isready" in service["healthcheck"]["test"][1]
    assert service["volumes"][0].split(":")[0] in COMPOSE["volumes"]


@pytest.mark.parametrize("name", DATABASES)
def test_each_database_looks_for_hosts_that_vanished_as_their_processes_do(name):
    settings = [f"--{setting}={value}" for setting, value in vanishing.of_server(vanishing.OF_CLIENT).items()]

    assert sorted(SERVICES[name]["command"]) == sorted([*settings, "postgres"])


def test_each_url_names_the_host_and_database_of_its_own_server():
    environment = SERVICES["web"]["environment"]
    variables = {"db-app": "DATABASE_URL", "db-jobs": "JOBS_DATABASE_URL", "db-events": "EVENTS_DATABASE_URL"}

    for host, variable in variables.items():
        assert environment[variable].endswith(f"@{host}:5432/{SERVICES[host]['environment']['POSTGRES_DB']}")


@pytest.mark.parametrize("name", PROCESSES.values())
def test_a_process_waits_for_healthy_databases_and_their_preparation(name):
    conditions = {other: gate["condition"] for other, gate in SERVICES[name]["depends_on"].items()}

    assert conditions == dict.fromkeys(DATABASES, "service_healthy") | {"bootstrap": "service_completed_successfully"}


def test_the_event_log_is_prepared_after_the_tables():
    depends_on = SERVICES["bootstrap"]["depends_on"]

    assert depends_on["migrate"]["condition"] == "service_completed_successfully"
    assert depends_on["db-events"]["condition"] == "service_healthy"


def test_what_stops_is_started_again_except_the_preparation():
    policies = {name: service["restart"] for name, service in SERVICES.items()}

    assert policies == {name: "no" if name in ONE_SHOT else "unless-stopped" for name in SERVICES}


def test_every_process_can_be_scaled_and_gets_its_sigterm():
    for name in PROCESSES.values():
        assert "container_name" not in SERVICES[name]
        assert SERVICES[name]["init"] is True
        assert isinstance(SERVICES[name]["command"], list)
    assert SERVICES["sla-breach-worker"]["scale"] == 2


@pytest.mark.parametrize("name", [name for name in PROCESSES.values() if name != "web"])
def test_the_health_of_a_process_is_what_its_own_command_says(name):
    assert SERVICES[name]["healthcheck"]["test"] == ["CMD", *SERVICES[name]["command"], "--check"]


def test_the_web_is_healthy_while_it_can_serve_pages():
    command = SERVICES["web"]["healthcheck"]["test"]

    assert command[:3] == ["CMD", "python", "-c"]
    assert "http://127.0.0.1:8000/readyz/web" in command[3]


def test_all_of_stega_is_one_image_that_does_not_run_as_root():
    dockerfile = (ROOT / "Dockerfile").read_text()

    assert {SERVICES[name]["image"] for name in (*ONE_SHOT, *PROCESSES.values())} == {"stega"}
    assert re.findall(r"^USER (.+)$", dockerfile, re.MULTILINE) == ["10001"]
    assert not any("user" in service for service in SERVICES.values())


def test_the_image_holds_run_time_requirements_and_collected_files_only():
    dockerfile = (ROOT / "Dockerfile").read_text()

    assert dockerfile.startswith("FROM python:3.12-slim\n")
    assert "pip install --no-cache-dir --disable-pip-version-check -r requirements.txt" in dockerfile
    assert "requirements-dev" not in dockerfile
    assert "collectstatic --noinput" in dockerfile


def test_the_images_own_command_is_that_of_the_web():
    command = re.findall(r"^CMD (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

    assert [tomllib.loads(f"command = {each}")["command"] for each in command] == [SERVICES["web"]["command"]]


def test_secrets_must_be_given_and_are_written_nowhere():
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if "KEY" in name or "PASSWORD" in name or "DATABASE_URL" in name:
                assert re.search(r"\$\{\w+:\?.+\}", value) or value == f"${{{name}:-}}", name


def test_the_example_names_every_variable_and_gives_no_secret():
    text = (ROOT / "compose.yml").read_text()

    assert set(re.findall(r"\$\{(\w+):", text)) == EXAMPLE
    assert re.findall(r"^\w*(?:KEY|PASSWORD)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE) == [""] * 3

"""stega/checks.py: settings that a process refuses to start with, each with a hint."""

from types import SimpleNamespace

import pytest

from stega import checks

SECRET = "a-secret-of-fifty-characters-or-more-0123456789-abcdefghij"
PRODUCTION = {
    "DEBUG": False,
    "SECRET_KEY": SECRET,
    "STEGA_BASE_URL": "https://help.example.com",
    "ALLOWED_HOSTS": ["help.example.com"],
    "EMAIL_HOST": "smtp.example.com",
}


def ids(messages):
    assert all(message.hint for message in messages)
    return [message.id for message in messages]


@pytest.fixture(autouse=True)
def collected_static_files(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    (tmp_path / "staticfiles.json").write_text("{}")


def test_safe_production_settings_pass(settings):
    for name, value in PRODUCTION.items():
        setattr(settings, name, value)

    assert checks.production_is_safe(None) == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("SECRET_KEY", "short", "stega.E006"),
        ("SECRET_KEY", "a" * 60, "stega.E006"),
        ("STEGA_BASE_URL", "http://help.example.com", "stega.E007"),
        ("ALLOWED_HOSTS", ["*"], "stega.E008"),
        ("EMAIL_HOST", "", "stega.W001"),
        ("STATIC_ROOT", "/nowhere", "stega.W002"),
    ],
)
def test_an_unsafe_production_setting_is_named(settings, name, value, expected):
    for each, safe in PRODUCTION.items():
        setattr(settings, each, safe)
    setattr(settings, name, value)

    assert ids(checks.production_is_safe(None)) == [expected]


def test_a_laptop_may_serve_plain_http_to_itself(settings):
    for name, value in (PRODUCTION | {"STEGA_BASE_URL": "http://localhost:8000"}).items():
        setattr(settings, name, value)

    assert checks.production_is_safe(None) == []


def test_two_aliases_on_one_database_are_refused(monkeypatch):
    one, other = {"HOST": "db", "PORT": 5432, "NAME": "a"}, {"HOST": "db", "PORT": 5432, "NAME": "b"}
    databases = {"default": one, "jobs": {**one, "USER": "somebody"}, "events": other}
    monkeypatch.setattr(checks, "settings", SimpleNamespace(DATABASES=databases))

    assert ids(checks.aliases_are_apart(None)) == ["stega.E002"]


def test_a_missing_alias_is_refused(monkeypatch):
    monkeypatch.setattr(checks, "settings", SimpleNamespace(DATABASES={"default": {}}))

    assert ids(checks.aliases_are_apart(None)) == ["stega.E001"]


@pytest.mark.parametrize(("timeout", "expected"), [(59, []), (60, ["stega.E003"]), (61, ["stega.E003"])])
def test_a_task_must_end_before_its_lease(settings, timeout, expected):
    settings.Q_CLUSTER = settings.Q_CLUSTER | {"timeout": timeout, "retry": 60}

    assert ids(checks.tasks_fit_their_lease(None)) == expected


@pytest.mark.parametrize(
    ("lease", "mail", "slack", "expected"),
    [
        (15.0, 5.0, 5, None),
        (15.0, 7.5, 5, None),
        (15.0, 7.6, 5, "twice EMAIL_TIMEOUT or"),
        (9.0, 5.0, 5, "T and SLACK"),
    ],
)
def test_a_network_step_must_fit_into_half_of_the_lease_of_a_send(settings, lease, mail, slack, expected):
    settings.DELIVERY_LEASE_SECONDS, settings.EMAIL_TIMEOUT, settings.SLACK_TIMEOUT_SECONDS = lease, mail, slack

    messages = checks.sends_fit_their_lease(None)

    assert ids(messages) == ([] if expected is None else ["stega.W003"])
    assert all(expected in message.hint for message in messages)


def test_another_router_is_refused(monkeypatch):
    routers = ["stega.database.routers.HomeRouter", "elsewhere.Router"]
    monkeypatch.setattr(checks, "settings", SimpleNamespace(DATABASE_ROUTERS=routers))

    assert ids(checks.router_is_closed(None)) == ["stega.E004"]


@pytest.mark.django_db(databases=["events"])
def test_the_engine_of_this_checkout_passes():
    assert checks.engine_is_current(None, databases=["events"]) == []


@pytest.mark.django_db(databases=["events"])
def test_an_engine_of_another_version_is_refused(monkeypatch, settings):
    settings.PGQUE_ENGINE = "builtin"
    monkeypatch.setattr("stega.pgque.bootstrap.vendored_version", lambda: "99.0.0")

    assert ids(checks.engine_is_current(None, databases=["events"])) == ["stega.E011"]

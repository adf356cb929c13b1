"""stega/env.py: what the environment may say, and how a bad value is refused."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from stega import env


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("true", True), ("ON", True), ("0", False), ("no", False), ("", False)]
)
def test_boolean_reads_the_usual_words(monkeypatch, value, expected):
    monkeypatch.setenv("STEGA_X", value)

    assert env.boolean("STEGA_X", not expected) is expected


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (lambda: env.boolean("STEGA_X", False), "maybe"),
        (lambda: env.integer("STEGA_X", 1), "1.5"),
        (lambda: env.integer("STEGA_X", 1, minimum=1), "0"),
        (lambda: env.seconds("STEGA_X", 1.0), "soon"),
        (lambda: env.seconds("STEGA_X", 1.0), "nan"),
        (lambda: env.seconds("STEGA_X", 1.0), "inf"),
        (lambda: env.seconds("STEGA_X", 1.0), "-3"),
        (lambda: env.choice("STEGA_X", "a", ("a", "b")), "c"),
        (lambda: env.integer("STEGA_X", 25, maximum=65_535), "99999"),
        (lambda: env.time_zone("STEGA_X", "UTC"), "Mars"),
        (lambda: env.time_zone("STEGA_X", "UTC"), "../UTC"),
        (lambda: env.time_zone("STEGA_X", "UTC"), "Etc/"),
        (lambda: env.web_address("STEGA_X", ""), "ftp://help.example.com"),
        (lambda: env.web_address("STEGA_X", ""), "https://help.example.com:99999"),
        (lambda: env.web_address("STEGA_X", ""), "https://"),
        (lambda: env.mail_address("STEGA_X", ""), "junk"),
        (lambda: env.mail_address("STEGA_X", ""), "Stega <>"),
    ],
)
def test_a_bad_value_is_refused_with_the_name_of_its_variable(monkeypatch, read, value):
    monkeypatch.setenv("STEGA_X", value)

    with pytest.raises(ImproperlyConfigured, match="STEGA_X"):
        read()


@pytest.mark.parametrize(
    "value", ["mysql://u:hunter2@h/d", "postgresql://u:hunter2@h:port/d", "postgresql://", "nonsense"]
)
def test_a_bad_database_url_is_refused_without_showing_its_password(monkeypatch, value):
    monkeypatch.setenv("DATABASE_URL", value)

    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL") as refusal:
        env.database("DATABASE_URL")

    assert "hunter2" not in str(refusal.value)


def test_a_database_url_becomes_a_connection(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://agent:p%40ss@db.example.com:55432/stega-app?sslmode=require")

    database = env.database("DATABASE_URL")

    assert database is not None
    assert (database["USER"], database["PASSWORD"], database["HOST"], database["PORT"], database["NAME"]) == (
        "agent",
        "p@ss",
        "db.example.com",
        55432,
        "stega-app",
    )
    assert database["OPTIONS"] == {"sslmode": "require"}


@pytest.mark.parametrize("value", ["stega@localhost", "Stega <stega@localhost>", "Help Desk <help@example.com>"])
def test_a_sender_may_have_a_name_and_a_local_host(monkeypatch, value):
    monkeypatch.setenv("STEGA_X", value)

    assert env.mail_address("STEGA_X", "") == value


def test_a_secret_has_a_default_in_development_only(monkeypatch):
    monkeypatch.delenv("STEGA_X", raising=False)

    assert env.secret("STEGA_X", development="dev", debug=True) == "dev"
    with pytest.raises(ImproperlyConfigured, match="STEGA_X"):
        env.secret("STEGA_X", development="dev", debug=False)

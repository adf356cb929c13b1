"""stega/installation/agreement.py: whether a database is as this process needs it, and what to do when it is not."""

from datetime import UTC, datetime, timedelta

import pytest

from stega.installation import agreement
from stega.installation.agreement import (
    Known,
    difference_of_engine,
    difference_of_migrations,
    known,
    unknown,
)

NOW = datetime(2030, 1, 31, 10, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)
KNOWN = Known(
    needed=(("tickets", "0001_initial"), ("tickets", "0003_squashed"), ("tickets", "0004_once")),
    replaced=frozenset({("tickets", "0002_lists"), ("tickets", "0003_keys")}),
)
ALL = dict.fromkeys(KNOWN.needed, LONG_AGO)


@pytest.mark.parametrize(
    ("recorded", "words"),
    [
        (ALL, ""),
        (ALL | {("tickets", "0002_lists"): LONG_AGO, ("elsewhere", "0009_new"): LONG_AGO}, ""),
        (
            {("tickets", "0001_initial"): LONG_AGO},
            "the default database lacks migration tickets.0003_squashed (and 1 more)."
            " Run: python manage.py migrate --database=default",
        ),
        (
            ALL | {("tickets", "0005_gone"): LONG_AGO},
            "the default database has migration tickets.0005_gone, which this process does not know."
            " Restart this process with the code of that version",
        ),
        (
            ALL | {("tickets", "0004_once"): NOW - timedelta(seconds=9)},
            "the default database was migrated a moment ago. It is tried again",
        ),
    ],
    ids=["all applied", "squashed ones and those of other apps too", "one is missing", "one is newer", "just applied"],
)
def test_recorded_migrations_tell_whether_the_schema_is_another(recorded, words, monkeypatch):
    monkeypatch.setattr(agreement, "SETTLING", timedelta(seconds=10))

    assert difference_of_migrations("default", KNOWN, recorded, NOW) == words


@pytest.mark.parametrize(
    ("installed", "wanted", "remedy"),
    [
        ("1.2.0", "1.2.0", ""),
        ("1.2.0", "1.10.0", "pgque_bootstrap"),
        ("1.10.0", "1.2.0", "Restart this process with the code of that version"),
        (None, "1.2.0", "pgque_bootstrap"),
        ("sha256:a", "sha256:b", "pgque_bootstrap, or restart this process"),
    ],
)
def test_the_engines_version_tells_whether_the_event_log_is_another(installed, wanted, remedy):
    words = difference_of_engine(installed, wanted)

    assert bool(words) == bool(remedy)
    assert words.endswith(remedy)


@pytest.mark.parametrize(("alias", "app"), [("default", "tickets"), ("jobs", "django_q")])
def test_each_database_needs_the_migrations_of_its_own_apps(alias, app):
    there = known(alias)

    assert (app, "0001_initial") in there.needed
    assert unknown(there, there.needed) == []
    assert ("django_q" in {name for name, _ in there.needed}) == (alias == "jobs")

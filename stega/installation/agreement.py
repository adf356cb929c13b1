"""Whether the databases' schemas are those that this process was written for: its migrations, its engine."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from stega.database import clock, mismatch
from stega.database.routers import home
from stega.pgque import bootstrap

SETTLING = timedelta(seconds=10)
"""How long after a migration an error may be older than it."""

RESTART = "Restart this process with the code of that version"

Migration = tuple[str, str]
"""App and name."""


@dataclass(frozen=True, slots=True)
class Known:
    """The migrations of one alias that this code has."""

    needed: tuple[Migration, ...]
    replaced: frozenset[Migration] = frozenset()
    """What its squashed migrations stand for: they may be recorded, and need not be."""


def watch() -> None:
    """From now on, errors are judged by what this process was written for.

    That is what the disk says at its start: whoever upgrades may put other files there under a process that runs.
    """
    for alias in ("default", "jobs"):
        mismatch.differences[alias] = partial(_of_migrations, alias, known(alias))
    mismatch.differences["events"] = partial(_of_engine, _engine_wanted())


@cache
def known(alias: str) -> Known:
    """As the disk said when it was first asked."""
    loader = MigrationLoader(None)
    replaced = {each for migration in loader.disk_migrations.values() for each in migration.replaces}
    there = {key for key in {*loader.graph.nodes, *loader.disk_migrations} if home(key[0]) == alias}
    return Known(tuple(sorted(there - replaced)), frozenset(replaced))


def pending(alias: str) -> tuple[str, ...]:
    """The migrations of the alias's own apps that this code has and the database has not, as `app.name`."""
    return _names(missing(known(alias), _recorded(alias)))


def missing(known: Known, recorded: Collection[Migration]) -> list[Migration]:
    return [each for each in known.needed if each not in recorded]


def unknown(known: Known, recorded: Collection[Migration]) -> list[Migration]:
    """Those of a newer version: of apps that this code has, but not of this code."""
    apps = {app for app, _ in known.needed}
    return sorted(each for each in recorded if each[0] in apps and each not in {*known.needed, *known.replaced})


def difference_of_migrations(alias: str, known: Known, recorded: Mapping[Migration, datetime], now: datetime) -> str:
    """What is to be done about a schema that is another, or was when the error came about; empty when it is not."""
    if lacks := _names(missing(known, recorded)):
        remedy = f"Run: python manage.py migrate --database={alias}"
        return f"the {alias} database lacks migration {_first(lacks)}. {remedy}"
    if news := _names(unknown(known, recorded)):
        return f"the {alias} database has migration {_first(news)}, which this process does not know. {RESTART}"
    if any(now - SETTLING < applied for applied in recorded.values()):
        return f"the {alias} database was migrated a moment ago. It is tried again"
    return ""


def difference_of_engine(installed: str | None, wanted: str) -> str:
    """The same for the event log; of upstream's scripts nobody can tell which is newer."""
    remedy = "Run: python manage.py pgque_bootstrap"
    if installed == wanted:
        return ""
    if installed is None:
        return f"the events database has no event log of the kind that this process needs. {remedy}"
    here, there = _number(wanted), _number(installed)
    if here and there:
        words = f"the events database has version {installed} of the event log, and this process is made for {wanted}"
        return f"{words}. {remedy if there < here else RESTART}"
    return f"the events database has another event log than this process brings. {remedy}, or restart this process"


def _of_migrations(alias: str, known: Known) -> str:
    return difference_of_migrations(alias, known, _recorded(alias), clock.now(alias))


def _recorded(alias: str) -> dict[Migration, datetime]:
    applied = MigrationRecorder(connections[alias]).applied_migrations()
    return {key: migration.applied for key, migration in applied.items()}


def _of_engine(wanted: str | None) -> str:
    return difference_of_engine(bootstrap.installed_engine(), wanted) if wanted else ""


def _engine_wanted() -> str | None:
    try:
        return bootstrap.wanted_engine()
    except ImproperlyConfigured:  # an upstream that was not fetched: the bootstrap says so, and what to do
        return None


def _names(migrations: Collection[Migration]) -> tuple[str, ...]:
    return tuple(f"{app}.{name}" for app, name in migrations)


def _first(names: Collection[str]) -> str:
    first, *others = names
    return f"{first} (and {len(others)} more)" if others else first


def _number(version: str) -> tuple[int, ...]:
    """To compare by; empty for what is no version."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()

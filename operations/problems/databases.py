from collections.abc import Iterator, Mapping
from datetime import timedelta

from django.conf import settings

from operations.facts.databases import Database, Transaction
from operations.facts.reading import Reading, Trouble
from operations.problems import words
from operations.problems.words import Problem, seconds

_VARIABLES = {"default": "DATABASE_URL", "jobs": "JOBS_DATABASE_URL", "events": "EVENTS_DATABASE_URL"}


def faults(databases: Mapping[str, Reading[Database]]) -> Iterator[Problem]:
    told: set[tuple[object, ...]] = set()
    for alias, reading in databases.items():
        if reading.is_away:
            down = words.UNREACHABLE if reading.trouble == Trouble.UNREACHABLE else words.SILENT
            yield down[alias].of(alias, alias=alias, variable=_VARIABLES[alias])
        elif reading.value:
            yield from _of_database(reading.value)
            yield from _of_server(reading.value)
            yield from _of_transaction(reading.value, told)


def _of_database(database: Database) -> Iterator[Problem]:
    alias = database.alias
    if database.is_read_only:
        yield words.READ_ONLY.of(alias, alias=alias, variable=_VARIABLES[alias])
    if database.pending_migrations:
        command = f"python manage.py migrate --database={alias}"
        yield words.MIGRATIONS_PENDING.of(alias, alias=alias, name=database.pending_migrations[0], command=command)
    if database.engine and not database.engine.is_current:
        yield words.VERSION_MISMATCH.of(alias, command="python manage.py pgque_bootstrap")


def _of_server(database: Database) -> Iterator[Problem]:
    alias, taken, limit = database.alias, database.connections, database.max_connections
    if abs(database.clock_skew) > timedelta(seconds=settings.CLOCK_SKEW_SECONDS):
        yield words.CLOCK_SKEW.of(alias, alias=alias, skew=seconds(abs(database.clock_skew)))
    if taken > 0.9 * limit:
        yield words.CONNECTIONS_SHORT.of(alias, number=taken, limit=limit, alias=alias)


def _of_transaction(database: Database, told: set[tuple[object, ...]]) -> Iterator[Problem]:
    """Once for each transaction, though every alias of a server that they share tells of it."""
    oldest = database.oldest_transaction
    if oldest is None:
        return
    identity = (oldest.pid, oldest.application, oldest.database, oldest.began)
    if oldest.age > timedelta(seconds=settings.OLD_TRANSACTION_SECONDS) and identity not in told:
        told.add(identity)
        yield _old(oldest, database.alias)


def _old(oldest: Transaction, alias: str) -> Problem:
    who = f"{oldest.application or '-'} (pid {oldest.pid})" if oldest.pid else oldest.application
    told = {"alias": alias, "who": who, "database": oldest.database, "age": seconds(oldest.age)}
    if oldest.pid:
        return words.OLD_TRANSACTION.of(alias, pid=oldest.pid, **told)
    return words.PREPARED_TRANSACTION.of(alias, gid=oldest.application, **told)

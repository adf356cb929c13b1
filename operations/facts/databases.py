"""The three databases themselves: version, clock, transactions, migrations, the event log's engine."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils import timezone

from operations.facts.reading import Question
from stega.database.pooling import is_pooled
from stega.installation import agreement
from stega.pgque import bootstrap, client
from stega.pgque.query import ALIAS


@dataclass(frozen=True, slots=True)
class Transaction:
    """The oldest transaction of the server. `pid` is 0 for one that was prepared and left."""

    pid: int
    application: str
    database: str
    age: timedelta
    began: datetime
    """By its server's clock; with the rest but the age it tells this transaction from any other, on any server."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What is installed in the event log's database: None when nothing is."""

    version: str | None
    """The PgQue API."""
    engine_version: str | None
    """Our own engine; None for upstream's."""
    is_current: bool
    """Whether it is the one that this code brings."""


@dataclass(frozen=True, slots=True)
class Database:
    alias: str
    at: datetime
    version: str
    is_read_only: bool
    oldest_transaction: Transaction | None
    clock_skew: timedelta
    """How far its clock is ahead of this host's."""
    is_pooled: bool
    """Whether the connection goes through a pooler."""
    connections: int
    max_connections: int
    pending_migrations: tuple[str, ...]
    engine: Engine | None
    """For `events` alone."""


def question(alias: str) -> Question[Database]:
    return Question(alias, partial(_ask, alias), is_of_server=True)


def engine_question() -> Question[Engine]:
    return Question("events", _engine)


def migrations_question(alias: str) -> Question[tuple[str, ...]]:
    return Question(alias, partial(_pending, alias))


def _ask(alias: str) -> Database:
    statement = """
        select clock_timestamp(), current_setting('server_version'),
            pg_is_in_recovery() or current_setting('transaction_read_only')::boolean,
            (select count(*) from pg_stat_activity where backend_type = 'client backend'),
            current_setting('max_connections')::integer
    """
    before = timezone.now()
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
        at, version, is_read_only, count, limit = cursor.fetchone()
    midway = before + (timezone.now() - before) / 2
    return Database(
        alias=alias,
        at=at,
        version=version.split()[0],
        is_read_only=is_read_only,
        oldest_transaction=_oldest_transaction(alias),
        clock_skew=at - midway,
        is_pooled=is_pooled(alias),
        connections=count,
        max_connections=limit,
        pending_migrations=_pending(alias),
        engine=_engine() if alias == ALIAS else None,
    )


def _oldest_transaction(alias: str) -> Transaction | None:
    """Of the whole server: each holds back what every database may clean up or rotate."""
    statement = """
        select pid, application_name, datname, clock_timestamp() - xact_start, xact_start
        from pg_stat_activity
        where xact_start is not null and pid <> pg_backend_pid() and backend_type in ('client backend', 'walsender')
        union all
        select 0, gid, database, clock_timestamp() - prepared, prepared from pg_prepared_xacts
        order by 4 desc
        limit 1
    """
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
    return Transaction(*row) if row else None


def _pending(alias: str) -> tuple[str, ...]:
    return () if alias == ALIAS else agreement.pending(alias)


def _engine() -> Engine:
    version = client.version()
    try:
        is_current = version is not None and bootstrap.engine_is_current()
    except ImproperlyConfigured:
        is_current = False
    return Engine(version, client.engine_version() if version else None, is_current)


def expected_engine() -> str:
    """The version that this code brings."""
    return bootstrap.vendored_version() if settings.PGQUE_ENGINE == "builtin" else "upstream"

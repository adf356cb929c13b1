"""Install the engine on `events` and prepare the queue: idempotent, safe for many at once, no part of `migrate`."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from stega.pgque import client, vendoring
from stega.pgque.catalogue import NOTIFICATION_WORKER, SLA_BREACH_DISPATCHER

VENDOR = Path(settings.BASE_DIR) / "vendor" / "pgque"
VICTIMS = ("40P01", "40001")
"""SQLSTATEs of a transaction that the server chose among several that were in each other's way."""
MOST_TRIES = 10


def vendored_version() -> str:
    return (VENDOR / "VERSION").read_text().strip()


def is_built() -> bool:
    """Whether our own pgque.sql is what its sources make."""
    command = [sys.executable, str(VENDOR / "build.py"), "--check"]
    return subprocess.run(command, capture_output=True).returncode == 0


def engine_is_current() -> bool:
    """Whether what is installed is what settings.PGQUE_ENGINE asks for, as this checkout has it."""
    return installed_engine() == wanted_engine()


def installed_engine() -> str | None:
    """What the database says of the engine that settings.PGQUE_ENGINE asks for; None when that one is not installed."""
    return client.marked_script() if settings.PGQUE_ENGINE == "upstream" else client.engine_version()


def wanted_engine() -> str:
    """What it says of this checkout's: our own engine's version, or the checksum of upstream's script."""
    is_upstream = settings.PGQUE_ENGINE == "upstream"
    return vendoring.checksum(install_script().encode()) if is_upstream else vendored_version()


def bootstrap(say: Callable[[str], object]) -> None:
    """Install the engine when it is not current, create and configure the queue, subscribe every consumer.

    Consumers are subscribed here, since a consumer sees only what is sent after its subscription. The SLA group begins
    as a plain consumer; its first member turns it into a group and keeps its cursor. Data and open batches stay.
    A step that a deadlock with the work of others ends is done again, MOST_TRIES times in all.
    Raises ImproperlyConfigured when upstream's script cannot be used, or the other engine is installed.
    """
    for step in (_provide_engine, _provide_queue, _subscribe):
        say(_insist(step))


def _insist(step: Callable[[], str]) -> str:
    """What the step says; each step is idempotent."""
    for _ in range(MOST_TRIES - 1):
        try:
            return step()
        except DatabaseError as error:
            if getattr(error.__cause__, "sqlstate", None) not in VICTIMS:
                raise
    return step()


def _provide_engine() -> str:
    with client.install_lock():
        if engine_is_current():
            return "engine is current"
        _install()
        return f"engine installed: PgQue API {client.version()}"


def _provide_queue() -> str:
    queue = settings.PGQUE_QUEUE
    created = client.create_queue(queue)
    for parameter, value in queue_config().items():
        client.set_queue_config(queue, parameter, value)
    return f"queue {queue} {'created' if created else 'is there'} and configured"


def _subscribe() -> str:
    queue = settings.PGQUE_QUEUE
    subscribed = {row["consumer_name"] for row in client.consumer_info() if row["queue_name"] == queue}
    for consumer in {NOTIFICATION_WORKER, SLA_BREACH_DISPATCHER} - subscribed:
        client.subscribe(queue, consumer)
    return f"consumers subscribed: {NOTIFICATION_WORKER}, {SLA_BREACH_DISPATCHER}"


def queue_config() -> dict[str, str]:
    """The queue's settings as code: PgQue's default of 3 s between ticks would rule over the ticker's pace."""
    return {
        "ticker_max_lag": f"{settings.PGQUE_TICK_SECONDS / 2} seconds",
        "ticker_max_count": "500",
        "ticker_idle_period": "60 seconds",
        "rotation_period": f"{settings.PGQUE_ROTATION_SECONDS} seconds",
        "max_retries": str(settings.PGQUE_MAX_RETRIES),
    }


def install_script() -> str:
    """The SQL that settings.PGQUE_ENGINE asks for; upstream's only when it agrees with its checksum."""
    if settings.PGQUE_ENGINE == "builtin":
        return (VENDOR / "pgque.sql").read_text()
    try:
        return vendoring.script(VENDOR / "upstream")
    except vendoring.VendoringError as error:
        raise ImproperlyConfigured(f"PGQUE_ENGINE is upstream, but {error}") from None


def _install() -> None:
    """Install over nothing or over the same engine: one cannot read the tables of the other."""
    installed = client.version() and ("builtin" if client.engine_version() else "upstream")
    if installed not in (None, settings.PGQUE_ENGINE):
        raise ImproperlyConfigured(
            f"PGQUE_ENGINE is {settings.PGQUE_ENGINE}, but the events database holds the {installed} engine, and one "
            f"cannot take over the other's data. Set PGQUE_ENGINE={installed}, name an empty database in "
            "EVENTS_DATABASE_URL, or, once nothing waits there, drop its schema pgque."
        )
    script = install_script()
    client.install(script)
    if settings.PGQUE_ENGINE == "upstream":
        client.mark_script(vendoring.checksum(script.encode()))

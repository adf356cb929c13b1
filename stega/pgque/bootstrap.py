"""Install the engine on `events` and prepare the queue: idempotent, safe for many at once, no part of `migrate`."""

from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from stega.pgque import client
from stega.pgque.catalogue import NOTIFICATION_WORKER, SLA_BREACH_DISPATCHER

VENDOR = Path(settings.BASE_DIR) / "vendor" / "pgque"


def vendored_version() -> str:
    return (VENDOR / "VERSION").read_text().strip()


def engine_is_current() -> bool:
    """Whether what is installed is what settings.PGQUE_ENGINE asks for, in this checkout's version."""
    if settings.PGQUE_ENGINE == "upstream":
        return client.version() is not None and client.engine_version() is None
    return client.engine_version() == vendored_version()


def bootstrap(say: Callable[[str], object]) -> None:
    """Install the engine when it is not current, create and configure the queue, subscribe every consumer.

    Consumers are subscribed here, since a consumer sees only what is sent after its subscription. The SLA group begins
    as a plain consumer; its first member turns it into a group and keeps its cursor. Data and open batches stay.
    """
    with client.install_lock():
        if engine_is_current():
            say("engine is current")
        else:
            client.install(install_script())
            say(f"engine installed: PgQue API {client.version()}")
    queue = settings.PGQUE_QUEUE
    created = client.create_queue(queue)
    for parameter, value in queue_config().items():
        client.set_queue_config(queue, parameter, value)
    say(f"queue {queue} {'created' if created else 'is there'} and configured")
    subscribed = {row["consumer_name"] for row in client.consumer_info() if row["queue_name"] == queue}
    for consumer in {NOTIFICATION_WORKER, SLA_BREACH_DISPATCHER} - subscribed:
        client.subscribe(queue, consumer)
    say(f"consumers subscribed: {NOTIFICATION_WORKER}, {SLA_BREACH_DISPATCHER}")


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
    if settings.PGQUE_ENGINE == "builtin":
        return (VENDOR / "pgque.sql").read_text()
    path = VENDOR / "upstream" / "pgque.sql"
    if not path.exists():
        raise ImproperlyConfigured(
            "PGQUE_ENGINE=upstream, but vendor/pgque/upstream/pgque.sql is not there: "
            "fetch it first, or set PGQUE_ENGINE=builtin."
        )
    return path.read_text()

"""System checks: what is wrong with the settings, and what to do about it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from django.utils.crypto import constant_time_compare

from stega.database import routers
from stega.web.startup import NO_STATIC_FILES

ALIASES = ("default", "jobs", "events")
MINIMUM_SECRET_LENGTH = 50


@register(Tags.database)
def engine_is_current(app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    from stega.pgque import bootstrap

    if "events" not in (databases or ()):
        return []
    try:
        current = bootstrap.engine_is_current()
    except DatabaseError:
        return [Error("The events database cannot be reached.", hint="Check EVENTS_DATABASE_URL.", id="stega.E010")]
    except ImproperlyConfigured as error:
        return [Error(str(error), hint="Or set PGQUE_ENGINE=builtin.", id="stega.E012")]
    if current:
        return []
    hint = "Run: python manage.py pgque_bootstrap"
    return [Error("The event log on the events database is missing or of another version.", hint=hint, id="stega.E011")]


@register(Tags.compatibility)
def aliases_are_apart(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Two aliases with one name would share a test database, and hide a query sent to the wrong one."""
    missing = [alias for alias in ALIASES if alias not in settings.DATABASES]
    if missing:
        return [Error(f"DATABASES lacks {', '.join(missing)}.", hint="Set all three database URLs.", id="stega.E001")]
    places = [_place(settings.DATABASES[alias]) for alias in ALIASES]
    if len(set(places)) == len(places):
        return []
    hint = "Give DATABASE_URL, JOBS_DATABASE_URL and EVENTS_DATABASE_URL a database each."
    return [Error("Two database aliases point at the same database.", hint=hint, id="stega.E002")]


@register(Tags.compatibility)
def router_is_closed(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if [f"{routers.__name__}.{routers.HomeRouter.__name__}"] == settings.DATABASE_ROUTERS:
        return []
    hint = "Leave DATABASE_ROUTERS to stega.database.routers.HomeRouter alone."
    return [Error("Another router may send an app away from its home.", hint=hint, id="stega.E004")]


@register(Tags.compatibility)
def tasks_fit_their_lease(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A task that outlives `retry` would be given to a second worker while the first still runs it."""
    cluster = settings.Q_CLUSTER
    if cluster["timeout"] < cluster["retry"]:
        return []
    hint = "Set TASK_TIMEOUT_SECONDS below TASK_RETRY_SECONDS."
    return [Error("A task may run longer than its lease.", hint=hint, id="stega.E003")]


@register(Tags.compatibility)
def sends_fit_their_lease(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A send is cut at half of its lease: a network step that may take longer never gets its own time-out."""
    half = settings.DELIVERY_LEASE_SECONDS / 2
    names = [name for name in ("EMAIL_TIMEOUT", "SLACK_TIMEOUT_SECONDS") if getattr(settings, name) > half]
    if not names:
        return []
    hint = f"Set DELIVERY_LEASE_SECONDS to twice {' and '.join(names)} or more, or the latter to {half:g} or less."
    return [Warning("A send may be cut before its network time-out is over.", hint=hint, id="stega.W003")]


@register(Tags.security)
def production_is_safe(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.DEBUG:
        return []
    return [*_secret(), *_address(), *_mail(), *_static_files()]


def _secret() -> list[CheckMessage]:
    short = len(settings.SECRET_KEY) < MINIMUM_SECRET_LENGTH or len(set(settings.SECRET_KEY)) < 5
    published = constant_time_compare(settings.SECRET_KEY, "development-only-not-a-secret")
    if not short and not published:
        return []
    hint = f"Set STEGA_SECRET_KEY to at least {MINIMUM_SECRET_LENGTH} random characters."
    return [Error("The secret key can be guessed.", hint=hint, id="stega.E006")]


def _address() -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    host = settings.STEGA_BASE_URL.split("//", 1)[1].split(":")[0]
    if settings.STEGA_BASE_URL.startswith("http:") and host not in ("localhost", "127.0.0.1"):
        hint = "Set STEGA_BASE_URL to an https:// address; cookies are then sent over TLS only."
        messages.append(Error("Sign-ins would travel without encryption.", hint=hint, id="stega.E007"))
    if "*" in settings.ALLOWED_HOSTS:
        hint = "Name the hosts in STEGA_ALLOWED_HOSTS."
        messages.append(Error("Any host name is accepted.", hint=hint, id="stega.E008"))
    return messages


def _mail() -> list[CheckMessage]:
    if settings.EMAIL_HOST:
        return []
    hint = "Set EMAIL_HOST (and EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD)."
    return [Warning("Mail is written to files under .stega/, nobody receives it.", hint=hint, id="stega.W001")]


def _static_files() -> list[CheckMessage]:
    if (Path(settings.STATIC_ROOT) / "staticfiles.json").exists():
        return []
    hint = "Run: python manage.py collectstatic --no-input"
    return [Warning("The static files have not been collected: pages have no style.", hint=hint, id=NO_STATIC_FILES)]


def _place(database: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(database.get(part) or "") for part in ("HOST", "PORT", "NAME"))

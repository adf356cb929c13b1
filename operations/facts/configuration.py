"""What the settings of this process say by themselves."""

from dataclasses import dataclass

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from stega import checks
from stega.pgque import bootstrap


@dataclass(frozen=True, slots=True)
class Finding:
    """What a system check holds against the settings, in its own words."""

    id: str
    text: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Configuration:
    findings: tuple[Finding, ...]
    is_said_to_be_pooled: bool
    """EVENTS_POOLED."""
    has_direct_address: bool
    """EVENTS_LISTEN_DATABASE_URL."""


def read() -> Configuration:
    """Asks no database."""
    messages = [
        *checks.aliases_are_apart(None),
        *checks.router_is_closed(None),
        *checks.tasks_fit_their_lease(None),
        *checks.sends_fit_their_lease(None),
        *checks.production_is_safe(None),
    ]
    return Configuration(
        tuple(Finding(str(each.id), str(each.msg), str(each.hint or "")) for each in messages),
        settings.EVENTS_POOLED,
        settings.EVENTS_DIRECT_DATABASE is not None,
    )


def engine_file_trouble() -> str:
    """What is wrong with the script that the bootstrap installs: "" when it agrees with its sources or checksums.

    Starts another process, so not for every scrape.
    """
    try:
        bootstrap.install_script()
    except (ImproperlyConfigured, OSError) as error:
        return str(error)
    is_ours = settings.PGQUE_ENGINE == "builtin"
    return "pgque.sql is not what its sources make" if is_ours and not bootstrap.is_built() else ""

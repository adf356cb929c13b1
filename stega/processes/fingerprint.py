"""The settings that processes of one Stega must share: each tells its own at the start, and notices another's."""

import logging
import os
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django.utils.crypto import salted_hmac
from django_q.conf import Conf

from stega.models import SharedSetting
from stega.pgque import bootstrap
from stega.wording.text import clean

logger = logging.getLogger(__name__)

SECRET = "STEGA_SECRET_KEY"
PLAIN = (
    *("PGQUE_ENGINE", "PGQUE_QUEUE", "PGQUE_MAX_RETRIES", "TASK_MAX_ATTEMPTS"),
    *("SLA_DEAD_INTERVAL_SECONDS", "DELIVERY_LEASE_SECONDS"),
    *("STEGA_BASE_URL", "STEGA_TIME_ZONE", "STEGA_LANGUAGE"),
)
REMEDY = (
    "Give both the same key. A new key takes over beside the former one, named in STEGA_SECRET_KEY_FALLBACKS; when "
    "that one is lost, stop every process and run: python manage.py shared_settings --forget"
)


class Difference(NamedTuple):
    name: str
    here: str
    there: str
    told_by: str


def fingerprint() -> dict[str, str]:
    """Each shared setting by name; of the secret key a digest keyed with itself, from which nobody learns it."""
    names = {"STEGA_TIME_ZONE": "TIME_ZONE", "STEGA_LANGUAGE": "LANGUAGE_CODE"}
    return {
        SECRET: _digest(settings.SECRET_KEY),
        "Stega's version": _version(),
        "the engine's version": bootstrap.vendored_version(),
        "Q_CLUSTER_NAME": Conf.CLUSTER_NAME,
        **{name: str(getattr(settings, names.get(name, name))) for name in PLAIN},
    }


def differences(here: Mapping[str, str], there: Mapping[str, SharedSetting]) -> list[Difference]:
    """In which settings the process that told its own last is another."""
    known = ((name, value, there[name]) for name, value in here.items() if name in there)
    return [Difference(name, value, row.value, row.told_by) for name, value, row in known if row.value != value]


def compare(process: str) -> None:
    """Warn of every setting in which this process differs from the last one that started, and tell its own instead.

    One transaction on `default`. A version differs while an upgrade rolls, and other settings spoil no data; but what
    is signed with another secret key nobody reads: raises ImproperlyConfigured unless the other's key is a fallback
    of this process.
    """
    here = fingerprint()
    if here.items() <= dict(SharedSetting.objects.values_list("name", "value")).items():
        return
    with transaction.atomic(using="default"):
        _wait_for_turn()
        there = {row.name: row for row in SharedSetting.objects.all()}
        for difference in differences(here, there):
            _tell(difference)
        news = {name: value for name, value in here.items() if name not in there or there[name].value != value}
        SharedSetting.objects.tell(news, f"{process} on {socket.gethostname()} (process {os.getpid()})")


def _wait_for_turn() -> None:
    """One process compares and tells at a time, until its transaction ends: there may be no rows yet to lock."""
    with connections["default"].cursor() as cursor:
        cursor.execute("select pg_advisory_xact_lock(hashtext('stega shared settings'))")


def _tell(difference: Difference) -> None:
    name, here, there, told_by = difference
    if name != SECRET:
        logger.warning("%s is %s here, but %s for %s: processes must agree", name, clean(here, 200), there, told_by)
    elif there in map(_digest, settings.SECRET_KEY_FALLBACKS):
        logger.warning("%s is new here: restart every process that has the former one, such as %s", name, told_by)
    else:
        raise ImproperlyConfigured(f"{name} is another than that of {told_by}. {REMEDY}")


def _digest(key: str) -> str:
    return salted_hmac("stega.fingerprint", "shared by all processes", secret=key, algorithm="sha256").hexdigest()[:16]


def _version() -> str:
    project = tomllib.loads((Path(settings.BASE_DIR) / "pyproject.toml").read_text())["project"]
    return str(project["version"])

"""The connection for what lives and dies with a session: LISTEN and the lock of the leader.

It is the alias's own, unless that one goes through a pooler in transaction mode: there every transaction may have
another session, and a lock would stay behind with one of them. Then it is a direct connection beside it, or none.
"""

from typing import Any

from django.conf import settings
from django.db import connections

from stega.database.pooling import POOLED
from stega.pgque.query import ALIAS

_direct: list[Any] = []


def connection() -> Any | None:
    """The connection; None behind a pooler without a direct address: no wake-ups, no leader. Main thread only."""
    if not settings.EVENTS_POOLED:
        return connections[ALIAS]
    if settings.EVENTS_DIRECT_DATABASE and not _direct:
        _direct.append(_beside(connections[ALIAS], settings.EVENTS_DIRECT_DATABASE))
    return _direct[0] if _direct else None


def require_alive() -> None:
    """Raise OperationalError when the direct connection is gone: the alias's own tells by itself at its next query."""
    for each in _direct:
        with each.cursor() as cursor:
            cursor.execute("select 1")


def reset() -> None:
    """Close the direct connection, with what was held by it."""
    while _direct:
        _direct.pop().close()


def _beside(pooled: Any, given: dict[str, Any]) -> Any:
    name = pooled.settings_dict["OPTIONS"]["application_name"].removesuffix(POOLED)
    options = {**pooled.settings_dict["OPTIONS"], "application_name": name, **given.get("OPTIONS", {})}
    return type(pooled)({**pooled.settings_dict, **given, "OPTIONS": options}, alias=ALIAS)

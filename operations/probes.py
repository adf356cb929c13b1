"""What machines ask: /livez, /readyz, /readyz/web, /metrics.

A middleware before all others answers them, since a probe or scrape comes to the address of one process, with a host
name that no visitor would use, without TLS or a session.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.utils import translation
from django.utils.crypto import constant_time_compare
from prometheus_client import CollectorRegistry, exposition

from operations import facts, metrics
from operations.facts import databases, queues
from operations.facts.databases import Database
from operations.facts.queues import Queues
from operations.facts.reading import Question, Reading, read_all
from operations.problems import problems
from stega.checks import ALIASES

OK = "ok"
LOOPBACK = {"127.0.0.1", "::1"}
FORWARDED = ("HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_REAL_IP")
FORWARDED_PREFIX = "HTTP_X_FORWARDED_"
SHARED_SECONDS = 1.0
"""How long the databases' answers serve every asker: strangers may ask as often as they like."""


class Probes:
    """Answers the probes' paths and passes everything else on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        view = VIEWS.get(request.path_info)
        if view is None:
            return self.get_response(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        with translation.override("en"):
            response = view(request)
        response["Cache-Control"] = "no-store"
        return response


def livez(request: HttpRequest) -> HttpResponse:
    """The process answers. Asks no database: a restart would mend none."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> HttpResponse:
    """All that Stega needs: three databases, migrations, event log. 503 when one of them is not well."""
    return _answer(_checks(_latest()))


def readyz_web(request: HttpRequest) -> HttpResponse:
    """All that a page needs: while jobs or events are away, people are served, and a balancer must not stop that."""
    told = _latest()
    return _answer({"default": _database(told["default"]), "migrations": _migrations([told["default"]])})


def metrics_view(request: HttpRequest) -> HttpResponse:
    """Every process's numbers, as the databases know them. For those who have the token, else for this machine."""
    refusal = _refusal(request)
    if refusal:
        return refusal
    told = facts.gather()
    encode, content_type = _encoder(request.headers.get("Accept", ""))
    text = encode(metrics.registry(told, problems(told)))
    return HttpResponse(text, content_type=content_type)


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """The format that the scraper asks for; the default one when what it asks for is none."""
    try:
        return exposition.choose_encoder(accept)
    except (TypeError, ValueError):  # of a version that is no number
        return exposition.choose_encoder("")


def _refusal(request: HttpRequest) -> HttpResponse | None:
    if settings.STEGA_METRICS_TOKEN:
        given = request.headers.get("Authorization", "")
        if constant_time_compare(given, f"Bearer {settings.STEGA_METRICS_TOKEN}"):
            return None
        return HttpResponse("token needed\n", status=401, headers={"WWW-Authenticate": "Bearer"})
    if settings.DEBUG or (request.META.get("REMOTE_ADDR") in LOOPBACK and not _may_be_forwarded(request)):
        return None
    return HttpResponse("set STEGA_METRICS_TOKEN to ask from another machine\n", status=403)


def _may_be_forwarded(request: HttpRequest) -> bool:
    """Whether somebody else may speak through a client of this machine: no proxy has to say that it is one."""
    if settings.STEGA_BEHIND_PROXY:
        return True
    return any(name in FORWARDED or name.startswith(FORWARDED_PREFIX) for name in request.META)


def _checks(told: dict[str, Reading[Any]]) -> dict[str, str]:
    events = told["events"].value
    engine = "unknown" if events is None else OK if events.engine and events.engine.is_current else "mismatch"
    return {
        **{alias: _database(told[alias]) for alias in ALIASES},
        "migrations": _migrations([told["default"], told["jobs"]]),
        "engine": engine,
        "queues": _queues(told["queues"], is_known=events is not None),
    }


def _queues(reading: Reading[Queues], *, is_known: bool) -> str:
    """Whether the event log's tables answer, which a lock may prevent while its server is well.

    What the role may not ask, or is not installed, is the engine's matter.
    """
    if not is_known:
        return "unknown"
    return str(reading.trouble) if reading.is_away else OK


def _database(reading: Reading[Database]) -> str:
    if reading.value is None:
        return str(reading.trouble)
    return "read-only" if reading.value.is_read_only else OK


def _migrations(told: list[Reading[Database]]) -> str:
    known = [reading.value for reading in told if reading.value]
    if any(database.pending_migrations for database in known):
        return "pending"
    return OK if len(known) == len(told) else "unknown"


def _answer(checks: dict[str, str]) -> HttpResponse:
    """Single words alone: strangers may read this."""
    is_ready = all(word == OK for word in checks.values())
    return JsonResponse({"ready": is_ready, "checks": checks}, status=200 if is_ready else 503)


class _Shared:
    """The databases' last answers, and who may ask anew: one at a time, the others wait for what it brings."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, Reading[Any]] = {}
        self._until = 0.0

    def latest(self) -> dict[str, Reading[Any]]:
        with self._lock:
            if time.monotonic() >= self._until or not settings.FACTS_SECONDS:
                questions: dict[str, Question[Any]] = {alias: databases.question(alias) for alias in ALIASES}
                self._told = read_all(questions | {"queues": queues.question()})
                self._until = time.monotonic() + SHARED_SECONDS
            return self._told


_latest = _Shared().latest

VIEWS: dict[str, Callable[[HttpRequest], HttpResponse]] = {
    "/livez": livez,
    "/readyz": readyz,
    "/readyz/web": readyz_web,
    "/metrics": metrics_view,
}

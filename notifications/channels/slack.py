"""Posts to Slack through an incoming webhook, whose address is a secret: it appears in no log, error or ledger row."""

import hashlib
import json
import re
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_noop

from notifications.channels import Failure, PermanentFailure, TemporaryFailure, Uncertain, Unsendable, Untried
from notifications.channels.deadline import DeadlineExceeded, cut_after, within
from notifications.messages import Wording

LONGEST_WAIT_SECONDS = 3600.0
"""A Retry-After beyond this is cut to it, so that one wrong answer cannot silence a channel for days."""
BUSY_SECONDS = 30.0
"""How long to wait after a 429 that does not say."""
MOST_READ = 1000
MOST_LEFT_BEHIND = 16
MOST_OF_ONE_LINE = 2
"""Posts that are listened to at most, of all webhooks and of one: what answers byte by byte says nothing for long."""
HEADERS = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "Stega"}
"""Some gatekeepers of webhooks refuse the name that Python's client goes by."""
HEARD_SECONDS = 30.0
"""How long a post that was given up is listened to; then its connection is shut."""
POST = "post to "
"""Begins the names of the threads that posts are made in; the line follows."""

REFUSED = gettext_noop("Slack refused")
UNREACHABLE = gettext_noop("Slack cannot be reached")
UNCERTAIN = gettext_noop("Slack stopped answering: uncertain whether the post arrived")
_SLACK_WORD = re.compile("[a-z_]{1,60}")
_Answer = tuple[int, str, Mapping[str, str]]
"""Status, body and headers."""


class _NoRedirect(HTTPRedirectHandler):
    """A webhook that sends us elsewhere is one that does not work: the page there would say 200 to anything."""

    def redirect_request(self, *_: Any) -> None:
        return None


def line(target: str) -> str:
    """The name of the webhook's circuit, which tells nobody the webhook."""
    return f"slack {hashlib.sha256(target.encode()).hexdigest()[:16]}"


def send(target: str, wording: Wording, late: Callable[[], None] = lambda: None) -> None:
    """Post `wording.text` to the webhook `target`, within SLACK_TIMEOUT_SECONDS and half the delivery lease.

    Raise TemporaryFailure (with Slack's own Retry-After) when Slack cannot take it now, PermanentFailure when it
    refuses the webhook or the post, Uncertain when it gives no status in time, Untried when too many posts are listened
    to. One that takes the post after that is heard for a while longer: then a thread of this module's calls `late`.
    """
    if not _is_web_address(target):
        raise Unsendable(gettext_noop("The Slack webhook of the product is not a web address"))
    name = POST + line(target)
    listened = [thread.name for thread in threading.enumerate() if thread.name.startswith(POST)]
    if len(listened) >= MOST_LEFT_BEHIND or listened.count(name) >= MOST_OF_ONE_LINE:
        raise Untried(UNREACHABLE, seconds=HEARD_SECONDS)
    seconds = min(settings.SLACK_TIMEOUT_SECONDS, settings.DELIVERY_LEASE_SECONDS / 2)
    answers: list[_Answer] = []

    def taken() -> None:
        if _is_success(answers[0][0]):
            late()

    try:
        within(seconds, lambda: _post(target, wording, seconds + HEARD_SECONDS, answers), taken, name=name)
    except URLError as failure:
        raise TemporaryFailure(UNREACHABLE, type(failure).__name__) from failure
    except (DeadlineExceeded, OSError, HTTPException, ValueError) as failure:
        if not answers:
            raise Uncertain(UNCERTAIN, type(failure).__name__) from failure
    status, body, headers = answers[-1]
    if not _is_success(status):
        raise classified(status, body, headers, timezone.now())


class _Connections(HTTPHandler, HTTPSHandler):
    """Opens the connection of one post, which any thread may cut; once cut, it opens none."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Lock()
        self._twin: socket.socket | None = None
        self._is_cut = False

    def do_open(self, http_class: Any, req: Request, **options: Any) -> HTTPResponse:
        return super().do_open(partial(self._made, http_class), req, **options)

    def _made(self, http_class: Any, host: str, **options: Any) -> Any:
        connection = http_class(host, **options)
        connection._create_connection = self._connected  # before a proxy or TLS says its first word
        return connection

    def _connected(self, *args: Any) -> socket.socket:
        sock = socket.create_connection(*args)
        with self._changed:
            self._twin = sock.dup()  # TLS takes the other one over; what shuts either shuts both
            if self._is_cut:
                self._twin.shutdown(socket.SHUT_RDWR)
        return sock

    def cut(self) -> None:
        with self._changed:
            self._is_cut = True
            if self._twin is not None:
                with suppress(OSError):
                    self._twin.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._changed:
            if self._twin is not None:
                self._twin.close()
                self._twin = None


def _post(target: str, wording: Wording, seconds: float, answers: list[_Answer]) -> None:
    """One request, through the proxy of the environment if there is one, and its answer into the list.

    The status decides: it is an answer before the body comes, if that comes at all, and of a success none is read. No
    more is read than Slack's one word.
    """
    request = Request(target, json.dumps({"text": wording.text}).encode(), HEADERS)
    connections = _Connections()
    with closing(connections), cut_after(seconds, connections.cut):
        try:
            answer = build_opener(_NoRedirect, connections).open(request, timeout=seconds)
        except HTTPError as refusal:
            answer = refusal
        with answer:
            answers.append((answer.status, "", answer.headers))
            if not _is_success(answer.status):
                answers.append((answer.status, answer.read(MOST_READ).decode("latin-1"), answer.headers))


def _is_success(status: int) -> bool:
    return 200 <= status < 300


def _is_web_address(target: str) -> bool:
    try:
        url = urlsplit(target)
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.hostname) and target.isascii() and target.isprintable()


def classified(status: int, body: str, headers: Mapping[str, str], now: datetime) -> Failure:
    """Say which kind of failure an HTTP answer is: busy and broken servers recover, a refusal stays one."""
    # Slack explains itself in one word; a page of somebody else's could hold the address it was asked for.
    detail = f"{status} {body if _SLACK_WORD.fullmatch(body) else ''}".strip()
    if status == 429:
        return TemporaryFailure(REFUSED, detail, seconds=retry_after(headers, now) or BUSY_SECONDS)
    if status == 408 or status >= 500:
        return TemporaryFailure(REFUSED, detail, seconds=retry_after(headers, now))
    return PermanentFailure(REFUSED, detail)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds that Retry-After asks for (a number or a date); None when it is missing or makes no sense."""
    value = next((value for name, value in headers.items() if name.lower() == "retry-after"), "").strip()
    if value.isascii() and value.isdigit():
        seconds = float(value[:9])
    else:
        try:
            moment = parsedate_to_datetime(value)
        except (TypeError, ValueError):
            return None
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds()
    return min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)

"""Posts to Slack through an incoming webhook, whose address is a secret: it appears in no log, error or ledger row."""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_noop

from notifications.channels import Failure, PermanentFailure, TemporaryFailure, Uncertain, Unsendable
from notifications.channels.deadline import LEFT_BEHIND, DeadlineExceeded, within
from notifications.messages import Wording

LONGEST_WAIT_SECONDS = 3600.0
"""A Retry-After beyond this is cut to it, so that one wrong answer cannot silence a channel for days."""
BUSY_SECONDS = 30.0
"""How long to wait after a 429 that does not say."""
MOST_READ = 1000
MOST_LEFT_BEHIND = 16
"""Posts that are listened to at most: what answers byte by byte never ends."""
HEADERS = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "Stega"}
"""Some gatekeepers of webhooks refuse the name that Python's client goes by."""
HEARD_SECONDS = 30
"""How long, for each network step, a post that was given up is listened to."""

REFUSED = gettext_noop("Slack refused")
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
    refuses the webhook or the post, Uncertain when it does not answer in time. One that takes the post after that is
    heard for a while longer: then a thread of this module's calls `late`.
    """
    if not _is_web_address(target):
        raise Unsendable(gettext_noop("The Slack webhook of the product is not a web address"))
    if sum(thread.name == LEFT_BEHIND for thread in threading.enumerate()) >= MOST_LEFT_BEHIND:
        raise TemporaryFailure(gettext_noop("Slack cannot be reached"))
    answers: list[_Answer] = []

    def post() -> None:
        answers.append(_post(target, {"text": wording.text}))

    def taken() -> None:
        if _is_success(answers[0][0]):
            late()

    try:
        within(min(settings.SLACK_TIMEOUT_SECONDS, settings.DELIVERY_LEASE_SECONDS / 2), post, taken)
    except URLError as failure:
        raise TemporaryFailure(gettext_noop("Slack cannot be reached"), type(failure).__name__) from failure
    except (DeadlineExceeded, OSError, HTTPException, ValueError, LookupError) as failure:
        raise Uncertain(UNCERTAIN, type(failure).__name__) from failure
    status, body, headers = answers[0]
    if not _is_success(status):
        raise classified(status, body, headers, timezone.now())


def _post(target: str, message: Mapping[str, str]) -> _Answer:
    """One request, through the proxy of the environment if there is one; no more is read than Slack's one word."""
    request = Request(target, json.dumps(message).encode(), HEADERS)
    try:
        answer = build_opener(_NoRedirect).open(request, timeout=HEARD_SECONDS)
    except HTTPError as refusal:
        answer = refusal
    with answer:
        charset = answer.headers.get_content_charset() or "utf-8"
        return answer.status, answer.read(MOST_READ).decode(charset, "replace"), answer.headers


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

"""Receivers that misbehave as the weather has it, and write down what they took and whether they said so."""

import asyncio
import random
import re
import time
from collections.abc import Callable
from email.parser import BytesHeaderParser
from typing import Any, cast

from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.chaos.judging import Told
from tests.support.mailbox import Mailbox
from tests.support.receivers import Answer, WebhookReceiver

BAD_SHARE = 0.1
"""How many of the messages feel the bad weather; all do when the receiver is down."""
SLOW_SECONDS = 0.3
REFUSED_FOR_EVER = "refused"
"""An address that begins so belongs to a mailbox that does not exist."""
GONE_HOOK = "gone"
"""A webhook whose path ends so was revoked."""

Chance = Callable[[], bool]


def chance_of(seed: int) -> Chance:
    dice = random.Random(seed)
    return lambda: dice.random() < BAD_SHARE


class MailServer(Mailbox):
    """A mailbox with weather. What it took is in `told`, by Message-ID."""

    def __init__(self, chance: Chance) -> None:
        super().__init__()
        self.weather = "fine"
        self.told: list[Told] = []
        self.refusals = 0
        self.rcpt = self._recipient
        self._chance = chance

    def _recipient(self, address: str) -> str | None:
        if address.startswith(REFUSED_FOR_EVER):
            self.refusals += 1
            return "550 5.1.1 no such mailbox"
        if self.weather == "down":
            return "421 4.3.2 not available"
        return "451 4.3.0 try again later" if self.weather == "refuses for now" and self._chance() else None

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        weather = self.weather if self._chance() else "fine"
        transport = cast(asyncio.Transport, server.transport)
        if weather == "closes":
            return "421 4.3.2 closing"
        if weather == "hangs up":
            transport.abort()
            return "250 OK"
        if weather == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        headers = BytesHeaderParser().parsebytes(envelope.original_content or b"")
        self.told.append(Told(time.monotonic(), headers["Message-ID"], answered=weather != "takes and hangs up"))
        if weather == "takes and hangs up":
            transport.abort()
        return "250 OK"


class SlackServer(WebhookReceiver):
    """A webhook receiver with weather. What it took is in `told`, as `slack TICKET`."""

    def __init__(self, chance: Chance) -> None:
        super().__init__()
        self.weather = "fine"
        self.told: list[Told] = []
        self._chance = chance

    def take(self, path: str, post: Any) -> Answer | None:
        if path.endswith(GONE_HOOK):
            return Answer(404, "no_service")
        weather = self.weather if self._chance() else "fine"
        if self.weather == "down":
            return Answer(500, "fatal_error")
        if weather == "busy":
            return Answer(429, "rate_limited", {"Retry-After": "1"})
        if weather == "broken":
            return Answer(503, "service_unavailable")
        if weather == "hangs up":
            return None
        answer = Answer(after=SLOW_SECONDS if weather == "slow" else 0.0)
        found = re.search(r"/tickets/(\d+)/", post["text"])
        assert found is not None, post
        told = Told(time.monotonic(), slack_post(int(found[1])), answered=weather != "takes and hangs up")
        self.told.append(told)
        return answer if told.answered else None


def slack_post(ticket_id: int) -> str:
    """The name under which a post about a ticket is counted."""
    return f"slack {ticket_id}"

"""What was sent on a machine without a mail server: files under STEGA_DATA_DIR, read by the development inbox."""

import json
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes, policy
from pathlib import Path

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

KEPT = 1000
"""How many mails and how many posts the inbox shows; older ones stay on the disk."""


@dataclass(frozen=True)
class Mail:
    to: str
    subject: str
    text: str
    message_id: str
    sent_at: datetime


class FileMailBackend(BaseEmailBackend):
    """Write each mail to a file of its own, whole or not at all. Any number of processes may."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        for message in email_messages:
            _store("mail", "eml", message.message().as_bytes())
        return len(email_messages)


def store_post(text: str) -> None:
    _store("slack", "json", json.dumps({"text": text}).encode())


def mails() -> list[Mail]:
    """The captured mails, oldest first."""
    return [_parse(content) for content in _contents("mail", "eml")]


def posts() -> list[str]:
    """The texts of the captured Slack posts, oldest first."""
    return [str(json.loads(content)["text"]) for content in _contents("slack", "json")]


def _store(kind: str, suffix: str, content: bytes) -> None:
    """Write under a name that sorts by time, and only then under the suffix that readers look for."""
    folder = Path(settings.STEGA_DATA_DIR) / kind
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{time.time_ns():020d}-{uuid.uuid4().hex}"
    unfinished = folder / f"{name}.part"
    unfinished.write_bytes(content)
    os.replace(unfinished, folder / f"{name}.{suffix}")


def _contents(kind: str, suffix: str) -> Iterator[bytes]:
    for path in sorted((Path(settings.STEGA_DATA_DIR) / kind).glob(f"*.{suffix}"))[-KEPT:]:
        yield path.read_bytes()


def _parse(content: bytes) -> Mail:
    message = message_from_bytes(content, policy=policy.default)
    body = message.get_body(("plain",))
    return Mail(
        to=message["To"].addresses[0].addr_spec,
        subject=str(message["Subject"]).strip(),  # folding may leave a blank in front
        text="" if body is None else str(body.get_content()),
        message_id=str(message["Message-ID"]),
        sent_at=message["Date"].datetime.replace(tzinfo=UTC),  # as Django writes it: -0000, which reads as naive
    )

"""Mail through Django's mail backends: one message to one address."""

import select
import smtplib
import socket
import threading
import time
import uuid
from base64 import b64encode
from contextlib import suppress
from email.headerregistry import Address
from email.policy import Compat32
from email.utils import parseaddr
from typing import Any, cast

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.validators import validate_email
from django.utils.encoding import punycode
from django.utils.translation import gettext_noop

from notifications.channels import Failure, PermanentFailure, TemporaryFailure, Unsendable
from notifications.channels.deadline import DeadlineExceeded, cut_after, within
from notifications.messages import Wording
from notifications.text import DETAIL_LIMIT, ELLIPSIS, single_line, without_quotes

IDLE_SECONDS = 5.0
"""How long an unused connection is trusted, without asking: the mails of one batch follow each other faster."""
SUBJECT_LIMIT = 300
NAME_LIMIT = 100
HEADERS = {"Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All"}
"""They tell the other side's machine not to answer, so that no two machines talk to each other for ever."""
REFUSED = gettext_noop("The mail server refused")
UNREACHABLE = gettext_noop("The mail server cannot be reached")
UNCERTAIN = gettext_noop("The mail server stopped answering: uncertain whether the mail arrived")
OUR_OWN_FAULT = {530, 534, 535, 538}
"""Replies about how we sign in: no recipient is at fault, and the next try may come after the mend."""


def line() -> str:
    """The name of the mail server's circuit."""
    return f"smtp {settings.EMAIL_HOST}:{settings.EMAIL_PORT}"


def message_id(event_key: uuid.UUID, recipient: str) -> str:
    """The same for every try at telling one recipient about one event, so that a receiver may drop copies."""
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
    return f"<{uuid.uuid5(event_key, recipient)}@{domain}>"


def send(target: str, name: str, wording: Wording, message_id: str) -> None:
    """Send one mail to the address `target`, shown as `name`, within half the delivery lease.

    Raise TemporaryFailure when the mail service is at fault, PermanentFailure when the address or the message is.
    A failure in mid-conversation leaves it uncertain whether the mail arrived: the next try has the same Message-ID.
    """
    message = composed(target, name, wording, message_id)
    connection = _line_of_this_thread()
    until = time.monotonic() + settings.DELIVERY_LEASE_SECONDS / 2
    try:
        if not connection.is_open():
            within(until - time.monotonic(), connection.open)
        with cut_after(until - time.monotonic(), connection.cut):
            connection.send(message)
    except (DeadlineExceeded, OSError) as error:
        if isinstance(error, DeadlineExceeded):
            hang_up()
        failure = classified(error, connected=connection.connected)
        failure.detail = _discreet(failure.detail, message)
        raise failure from error


def composed(target: str, name: str, wording: Wording, message_id: str) -> EmailMultiAlternatives:
    """The mail as it is sent. PermanentFailure for an address no mail can reach."""
    message = Mail(
        subject=single_line(wording.subject, SUBJECT_LIMIT),
        body=wording.text,
        to=[_mailbox(target, name)],
        headers={**HEADERS, "Message-ID": message_id},
    )
    message.attach_alternative(wording.html, "text/html")
    return message


class Mail(EmailMultiAlternatives):
    def message(self, **options: Any) -> Any:
        """With a boundary that is in no text. Without one, the library looks for it by a pattern made for each mail."""
        message = super().message(**options)
        message.replace_header("Content-Type", f'multipart/alternative; boundary="{uuid.uuid4().hex}"')
        for part in message.walk():
            part.policy = _quick
        return message


class _Quick(Compat32):
    """Writes a header that fits into a line as it is; the library takes each apart to see where it could be folded."""

    def fold_binary(self, name: str, value: Any) -> bytes:
        if isinstance(value, str) and len(name) + len(value) < 76 and value.isascii() and value.isprintable():
            return f"{name}: {value}{self.linesep}".encode()
        return super().fold_binary(name, value)


_quick = _Quick()


def hang_up() -> None:
    """Cut this thread's connection to the mail server, in mid-conversation if need be."""
    line: Line | None = _lines.__dict__.pop("line", None)
    if line is not None:
        line.cut()


def classified(failure: OSError | DeadlineExceeded, *, connected: bool) -> Failure:
    """Say which kind of failure `failure` is; what the replies mean is RFC 5321, section 4.2.1."""
    if isinstance(failure, smtplib.SMTPRecipientsRefused):
        return _of_reply(*next(iter(failure.recipients.values())))
    if isinstance(failure, smtplib.SMTPDataError):
        return _of_reply(failure.smtp_code, failure.smtp_error)
    if isinstance(failure, smtplib.SMTPResponseException):
        return TemporaryFailure(REFUSED, _words(failure.smtp_code, failure.smtp_error))
    return TemporaryFailure(UNCERTAIN if connected else UNREACHABLE, failure)


def _of_reply(code: int, text: bytes | str) -> Failure:
    if 500 <= code < 600 and code not in OUR_OWN_FAULT:
        return PermanentFailure(REFUSED, _words(code, text))
    return TemporaryFailure(REFUSED, _words(code, text))


def _discreet(detail: str, message: EmailMultiAlternatives) -> str:
    """The reply without what it repeats of our sign-in or of the mail: a filter may quote what it does not like."""
    for secret in _sign_in():
        detail = detail.replace(secret, ELLIPSIS)
    sent = message.message()
    encoded = [str(part.get_payload()) for part in sent.walk() if not part.is_multipart()]
    seen = " ".join([str(message.subject), str(message.body), str(sent["Subject"]), *encoded])
    return without_quotes(single_line(detail, DETAIL_LIMIT), seen.replace(settings.STEGA_BASE_URL, " "))


def _sign_in() -> list[str]:
    """The password as it stands in the commands of a sign-in, the longest form first."""
    user, password = settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD
    if not password:
        return []
    encoded = [b64encode(text.encode()).decode() for text in (f"\0{user}\0{password}", password)]
    return [*encoded, password]


def _words(code: int, text: bytes | str) -> str:
    return f"{code} {text.decode('utf-8', 'replace') if isinstance(text, bytes) else text}"


def _mailbox(target: str, name: str) -> str:
    """`target` with `name` quoted as a header needs it."""
    try:
        validate_email(target)
        punycode(target.rpartition("@")[2])  # a domain that no name server can be asked for raises here
        return str(Address(single_line(name, NAME_LIMIT), addr_spec=target))
    except (ValidationError, ValueError) as failure:
        raise Unsendable(gettext_noop("Not an address that mail can be sent to")) from failure


class Line:
    """A connection to the mail server, kept open between the mails of a batch. One thread uses it at a time."""

    def __init__(self) -> None:
        self.server = (settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT)
        self._backend = get_connection()
        self._used_at = time.monotonic()
        self.connected = False
        """Whether the mail in hand may have been taken: the conversation about it has begun."""

    def is_open(self) -> bool:
        """Whether the server has neither hung up nor said that it will: it says nothing unasked but its good-bye."""
        smtp = cast(smtplib.SMTP | None, getattr(self._backend, "connection", None))
        if smtp is None or time.monotonic() - self._used_at > IDLE_SECONDS:
            return False
        return smtp.sock is not None and not select.select([smtp.sock], [], [], 0)[0]

    def open(self) -> None:
        """Connect and sign in, anew if need be. In a thread that may be left behind: a name server cannot be cut."""
        self.connected = False
        self.cut()
        try:
            self._backend.open()
        except Exception:
            self.cut()
            raise

    def send(self, message: EmailMultiAlternatives) -> None:
        """Send over the open connection, which a failure closes unless it is about this mail alone."""
        self.connected = True
        try:
            self._backend.send_messages([message])
        except (smtplib.SMTPRecipientsRefused, smtplib.SMTPDataError):
            raise
        except Exception:
            self.cut()
            raise
        finally:
            self._used_at = time.monotonic()

    def cut(self) -> None:
        """Close without a word to the other side, waking a thread that waits for an answer."""
        for name in ("connection", "_partial_connection"):
            smtp = cast(smtplib.SMTP | None, getattr(self._backend, name, None))
            if smtp is None:
                continue
            if smtp.sock is not None:
                with suppress(OSError):
                    smtp.sock.shutdown(socket.SHUT_RDWR)
            smtp.close()
            setattr(self._backend, name, None)


_lines = threading.local()


def _line_of_this_thread() -> Line:
    line: Line | None = getattr(_lines, "line", None)
    if line is None or line.server != (settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT):
        hang_up()
        line = _lines.line = Line()
    return line

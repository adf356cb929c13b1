"""Mail through Django's mail backends: one message to one address."""

import smtplib
import time
import uuid
from base64 import b64encode
from email.headerregistry import Address
from email.policy import Compat32
from email.utils import parseaddr
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.validators import validate_email
from django.utils.encoding import punycode
from django.utils.translation import gettext_noop

from notifications.channels import Deferred, Failure, PermanentFailure, TemporaryFailure, Uncertain, Unsendable
from notifications.channels.deadline import DeadlineExceeded, cut_after, within
from notifications.channels.smtp import hang_up, line_of_this_thread
from notifications.messages import Wording
from notifications.text import DETAIL_LIMIT, ELLIPSIS, single_line, without_quotes

SUBJECT_LIMIT = 300
NAME_LIMIT = 100
HEADERS = {"Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All"}
"""They tell the other side's machine not to answer, so that no two machines talk to each other for ever."""
REFUSED = gettext_noop("The mail server refused")
UNREACHABLE = gettext_noop("The mail server cannot be reached")
UNCERTAIN = gettext_noop("The mail server stopped answering: uncertain whether the mail arrived")
CLOSING = 421
"""The server's good-bye, which may stand for the reply to any command."""
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

    Raise TemporaryFailure when the mail service is at fault, PermanentFailure when the address or the message is,
    Deferred when the service works and puts one of these off (greylisting, a full mailbox), Uncertain when the server
    got the mail and does not answer: the next try has the same Message-ID.
    """
    message = composed(target, name, wording, message_id)
    connection = line_of_this_thread()
    until = time.monotonic() + settings.DELIVERY_LEASE_SECONDS / 2
    try:
        if not connection.is_open():
            within(until - time.monotonic(), connection.open, name="mail server")
        with cut_after(until - time.monotonic(), connection.cut):
            connection.send(message)
    except (DeadlineExceeded, OSError) as error:
        if isinstance(error, DeadlineExceeded):
            hang_up()
        failure = classified(error, is_in_doubt=connection.is_in_doubt)
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


def classified(failure: OSError | DeadlineExceeded, *, is_in_doubt: bool) -> Failure:
    """Say which kind of failure `failure` is; what the replies mean is RFC 5321, section 4.2.1.

    Without a reply that makes sense it depends on whether the server may have the mail.
    """
    if isinstance(failure, smtplib.SMTPRecipientsRefused):
        return _of_reply(*next(iter(failure.recipients.values())))
    if isinstance(failure, smtplib.SMTPDataError) and failure.smtp_code >= 400:
        return _of_reply(failure.smtp_code, failure.smtp_error)
    if isinstance(failure, smtplib.SMTPResponseException) and not is_in_doubt:
        return TemporaryFailure(REFUSED, _words(failure.smtp_code, failure.smtp_error))
    return Uncertain(UNCERTAIN, failure) if is_in_doubt else TemporaryFailure(UNREACHABLE, failure)


def _of_reply(code: int, text: bytes | str) -> Failure:
    """Of a reply to the recipient or to the mail itself, before which the server has taken the sender."""
    if 400 <= code < 500 and code != CLOSING:
        return Deferred(REFUSED, _words(code, text))
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

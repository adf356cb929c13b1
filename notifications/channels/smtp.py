"""Connections to the mail server, which can be cut at any moment."""

import select
import smtplib
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends import smtp

IDLE_SECONDS = 5.0
"""How long an unused connection is trusted, without asking: the mails of one batch follow each other faster."""

GO_ON = 354
"""The reply after which the server may have the mail."""

MOST_READ = 16 * 1024
"""Of one reply, in bytes: the library bounds its lines, and would gather them for as long as they come."""


class _Replies:
    """What the server says, one reply at a time; OSError for a longer one."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.close = file.close
        self.begin()

    def begin(self) -> None:
        self._left = MOST_READ

    def readline(self, limit: int) -> bytes:
        line = self._file.readline(limit)
        self._left -= len(line)
        if self._left < 0:
            raise OSError("the reply is too long")
        return line


class _Cuttable(smtplib.SMTP):
    """Known to its backend before it connects; once that was cut, it says no further word."""

    def __init__(self, backend: "EmailBackend", *args: Any, **options: Any) -> None:
        self.backend = backend
        backend.conversation = self
        super().__init__(*args, **options)

    def getreply(self) -> tuple[int, bytes]:
        sock = self.sock
        if self.backend.is_cut or sock is None:
            self.close()
            raise smtplib.SMTPServerDisconnected("given up")
        if self.file is None:
            self.file = _Replies(sock.makefile("rb"))
        self.file.begin()
        code, text = super().getreply()
        if code == GO_ON:
            self.backend.is_in_doubt = True
        return code, text

    def data(self, msg: Any) -> tuple[int, bytes]:
        """As smtplib's; but any reply of success is one, and a refusal before the body leaves no mail half begun."""
        try:
            code, text = super().data(msg)
        except smtplib.SMTPDataError:
            with suppress(OSError):
                self.rset()
            raise
        return (250 if 200 <= code < 300 else code), text


class _CuttableTLS(_Cuttable, smtplib.SMTP_SSL):
    """The same with TLS from the first byte."""


class EmailBackend(smtp.EmailBackend):
    """Django's, for one connection: what is given up with `cut`, even while it connects, sends nothing any more."""

    conversation: smtplib.SMTP | None = None
    is_cut = False
    is_in_doubt = False
    """Whether the server may have the mail in hand, or the last one; a reply settles that."""

    @property
    def connection_class(self) -> Any:
        return partial(_CuttableTLS if self.use_ssl else _Cuttable, self)

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        self.is_in_doubt = False
        return super().send_messages(email_messages)

    def cut(self) -> None:
        """Close without a word to the other side, waking a thread that waits for an answer. From any thread."""
        self.is_cut = True
        conversation = self.conversation
        if conversation is None:
            return
        sock = conversation.sock  # the thread that sends may drop it at any moment
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        conversation.close()

    def is_open(self) -> bool:
        """Whether the server has neither hung up nor said that it will: it says nothing unasked but its good-bye."""
        sock = self.connection.sock if self.connection else None
        return sock is not None and not select.select([sock], [], [], 0)[0]


class Line:
    """A connection by the backend of the settings, kept open between the mails of a batch. One thread uses it."""

    def __init__(self) -> None:
        self.server = _server()
        self._backend: Any = None
        self._used_at = time.monotonic()

    @property
    def is_in_doubt(self) -> bool:
        """Whether a mail that failed without a reply may have been taken."""
        return getattr(self._backend, "is_in_doubt", False)

    def is_open(self) -> bool:
        """Whether a mail may be sent without connecting first. A backend that knows no server is always open."""
        if self._backend is None:
            return False
        if not isinstance(self._backend, EmailBackend):
            return True
        return time.monotonic() - self._used_at <= IDLE_SECONDS and self._backend.is_open()

    def open(self) -> None:
        """Connect and sign in, anew if need be. In a thread that may be left behind: a name server cannot be cut."""
        self.cut()
        self._backend = backend = get_connection()
        try:
            backend.open()
        except Exception:
            self.cut()
            raise
        self._used_at = time.monotonic()

    def send(self, message: EmailMessage) -> None:
        """Send over the open connection, which a failure closes unless it is about this mail alone."""
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
        if isinstance(self._backend, EmailBackend):
            self._backend.cut()


def hang_up() -> None:
    """Cut this thread's connection to the mail server, in mid-conversation if need be."""
    line: Line | None = _lines.__dict__.pop("line", None)
    if line is not None:
        line.cut()


def line_of_this_thread() -> Line:
    """The one to the server of the settings."""
    line: Line | None = getattr(_lines, "line", None)
    if line is None or line.server != _server():
        hang_up()
        line = _lines.line = Line()
    return line


def _server() -> tuple[str, str, int]:
    return settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT


_lines = threading.local()

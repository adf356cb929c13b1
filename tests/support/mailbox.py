"""A real SMTP receiver on loopback: keeps what it accepts, and misbehaves when told to."""

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from types import TracebackType
from typing import Any, Self, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

logging.getLogger("mail.log").setLevel(logging.ERROR)  # aiosmtpd tells every line of every conversation

Answer = str | None
"""An SMTP reply such as "550 5.1.1 no such user"; None for a good one."""


@dataclass(frozen=True)
class Received:
    to: str
    message: EmailMessage


class Mailbox:
    """Listens on 127.0.0.1 at `port` while the context is open; its answers may be changed meanwhile.

    `rcpt` and `data` answer per address and per mail. `drop` cuts the connection after a mail was taken, before the
    answer. Clearing `gate` makes it take a mail and then say nothing until the gate is set. `sign_in_works` decides
    what AUTH gets. `connections` counts those ever made.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.rcpt: Callable[[str], Answer] = lambda address: None
        self.data: Callable[[Received], Answer] = lambda mail: None
        self.drop = False
        self.sign_in_works = True
        self.gate = threading.Event()
        self.gate.set()
        self.host = "127.0.0.1"
        self.port = 0
        self._conversations: list[SMTP] = []
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mailbox", daemon=True)

    def listen_at(self, port: int) -> None:
        """Take connections at this port too."""
        asyncio.run_coroutine_threadsafe(self._listen(port), self._loop).result()

    def hang_up(self) -> None:
        """Close every open connection, as a server does with idle ones."""
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result()

    @property
    def connections(self) -> int:
        return len(self._conversations)

    def addresses(self) -> list[str]:
        return [each.to for each in self.received]

    def __enter__(self) -> Self:
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(0), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.set()
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        answer = self.rcpt(address)
        if answer is None:
            envelope.rcpt_tos.append(address)
        return answer or "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        message = message_from_bytes((envelope.original_content or b"").replace(b"\r\n", b"\n"), policy=policy.default)
        mail = Received(envelope.rcpt_tos[0], message)
        answer = self.data(mail)
        if answer is None:
            self.received.append(mail)
        await self._loop.run_in_executor(None, self.gate.wait)
        if self.drop and server.transport is not None:
            cast(asyncio.Transport, server.transport).abort()
        return answer or "250 OK"

    def authenticate(self, *args: Any) -> AuthResult:
        return AuthResult(success=self.sign_in_works, handled=False)

    async def _listen(self, port: int) -> int:
        server = await self._loop.create_server(self._connection, self.host, port)
        self._servers.append(server)
        taken: int = server.sockets[0].getsockname()[1]
        return taken

    def _connection(self) -> SMTP:
        conversation = SMTP(
            self, hostname="mailbox", loop=self._loop, authenticator=self.authenticate, auth_require_tls=False
        )
        self._conversations.append(conversation)
        return conversation

    async def _hang_up(self) -> None:
        for server in self._conversations:
            if server.transport is not None:
                server.transport.close()
        await asyncio.sleep(0)  # what close() has asked the loop for is done

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        ended = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        await self._loop.shutdown_default_executor()

"""A mail server that keeps nothing, in a process of its own and so lean that it takes little time of the worker's.

Says at which port it listens; told to end by the end of its input, prints one JSON line: how many mails over how many
connections. The argument is how many seconds it thinks about each mail.
"""

import asyncio
import json
import sys
from typing import cast


class Sink:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.mails = 0
        self.connections = 0


class Conversation(asyncio.Protocol):
    """One connection, until the client or this process ends: every command is welcome. Nobody sends ahead."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.heard = b""
        self.is_mail = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.sink.connections += 1
        self.transport.write(b"220 sink\r\n")

    def data_received(self, data: bytes) -> None:
        self.heard += data
        if self.is_mail and self.heard.endswith(b"\r\n.\r\n"):
            self.sink.mails += 1
            asyncio.get_running_loop().call_later(self.sink.seconds, self.transport.write, b"250 OK\r\n")
            self.heard, self.is_mail = b"", False
        elif not self.is_mail and self.heard.endswith(b"\r\n"):
            command = self.heard.strip().upper()
            self.transport.write({b"DATA": b"354 go on\r\n", b"QUIT": b"221 bye\r\n"}.get(command, b"250 OK\r\n"))
            self.heard, self.is_mail = b"", command == b"DATA"


async def main(seconds: float) -> None:
    sink = Sink(seconds)
    server = await asyncio.get_running_loop().create_server(lambda: Conversation(sink), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps({"mails": sink.mails, "connections": sink.connections}), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))

"""A mail server that keeps nothing, in a process of its own and so lean that it takes little time of the worker's.

Says at which port it listens; told to end by the end of its input, prints one JSON line: how many mails over how many
connections. The argument is how many seconds it thinks about each mail.
"""

import asyncio
import json
import sys
from contextlib import suppress


class Sink:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.mails = 0
        self.connections = 0

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until the client or this process ends: every command is welcome."""
        self.connections += 1
        writer.write(b"220 sink\r\n")
        with suppress(asyncio.CancelledError):
            while command := (await reader.readline()).strip().upper():
                writer.write(await self.answer(command, reader, writer))
        writer.close()

    async def answer(self, command: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        if command == b"DATA":
            writer.write(b"354 go on\r\n")
            await reader.readuntil(b"\r\n.\r\n")
            self.mails += 1
            await asyncio.sleep(self.seconds)
        return b"221 bye\r\n" if command == b"QUIT" else b"250 OK\r\n"


async def main(seconds: float) -> None:
    sink = Sink(seconds)
    server = await asyncio.start_server(sink.converse, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps({"mails": sink.mails, "connections": sink.connections}), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))

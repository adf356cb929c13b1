"""A mail server that keeps nothing, in a process of its own so that it takes no time of the worker's.

Says at which port it listens; told to end by the end of its input, prints one JSON line: how many mails over how many
connections. The argument is how many seconds it thinks about each mail.
"""

import asyncio
import json
import logging
import sys
from typing import Any

from aiosmtpd.smtp import SMTP

logging.getLogger("mail.log").setLevel(logging.ERROR)


class Sink:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.mails = 0
        self.connections = 0

    async def handle_DATA(self, *conversation: Any) -> str:
        self.mails += 1
        await asyncio.sleep(self.seconds)
        return "250 OK"

    def connection(self) -> SMTP:
        self.connections += 1
        return SMTP(self, hostname="sink")


async def main(seconds: float) -> None:
    sink = Sink(seconds)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(sink.connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201
    await loop.run_in_executor(None, sys.stdin.read)
    print(json.dumps({"mails": sink.mails, "connections": sink.connections}), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))

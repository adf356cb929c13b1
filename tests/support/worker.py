"""A worker of the application's queue whose handler does what the payload of a message says.

    python -m tests.support.worker CONSUMER [DEAD_INTERVAL]

With a dead interval it is a member of the group CONSUMER. A message's `display_name` is "exit" (end the process as a
crash does), "sys.exit" (raise SystemExit), "hang" (say so and never return), "gate PATH" (say so and wait for the
file) or anything else (nothing). Each is told on stdout: "begins with N", and, when it is through, "handled N".
"""

import logging
import os
import sys
import threading
from pathlib import Path

import django


def main(name: str, dead_interval: str = "") -> None:
    django.setup()
    from stega.pgque.consumer import Consumer
    from stega.pgque.message import Message
    from stega.processes.stopping import stop_on_signals
    from tests.support.waiting import wait_until

    def handle(message: Message) -> None:
        number, (verb, *rest) = message.payload["user_id"], message.payload["display_name"].split()
        print("begins with", number, flush=True)  # noqa: T201
        if verb == "exit":
            os._exit(9)
        if verb == "sys.exit":
            sys.exit(9)
        if verb == "hang":
            threading.Event().wait()
        if verb == "gate":
            wait_until(Path(rest[0]).exists, timeout=60)
        print("handled", number, flush=True)  # noqa: T201

    logging.getLogger("stega").setLevel(logging.INFO)
    group = {"group": True, "dead_interval": float(dead_interval)} if dead_interval else {}
    consumer = Consumer(name, {"ticket.welcome": handle}, **group)  # type: ignore[arg-type]
    with stop_on_signals(consumer):
        consumer.run()


if __name__ == "__main__":
    main(*sys.argv[1:])

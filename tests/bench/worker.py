"""A notification worker whose handler does nothing but remember when it was called.

Prints, when it ends, one JSON line: how many messages, the first and last moment, the latencies of those whose payload
says when they were sent, and the peak memory of the process in MiB.
"""

import json
import resource
import sys
import time

import django


def main(expected: int) -> None:
    django.setup()
    from stega.pgque.catalogue import NOTIFICATION_WORKER
    from stega.pgque.consumer import Consumer
    from stega.pgque.message import Message
    from stega.processes.stopping import stop_on_signals

    moments: list[float] = []
    latencies: list[float] = []

    def handle(message: Message) -> None:
        now = time.time()
        if len(moments) < 2:
            moments.append(now)
        moments[-1] = now
        if sent := message.payload.get("sent"):
            latencies.append(now - sent)
        if consumer.handled + 1 == expected:
            consumer.stop()

    consumer = Consumer(NOTIFICATION_WORKER, {"ticket.welcome": handle})
    with stop_on_signals(consumer):
        print("ready", flush=True)  # noqa: T201
        consumer.run()
        consumer.step()  # ack what the stop left open
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = {"handled": consumer.handled, "moments": moments, "latencies": latencies, "peak_mib": peak}
    print(json.dumps(result), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]))

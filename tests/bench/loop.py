"""A loop that waits as long as a receiver thinks and then works as long as a mail costs: what a worker is at its best.

The arguments are the seconds of both, and for how long. Prints how often it came round.
"""

import sys
import threading
import time


def main(wait: float, work: float, seconds: float) -> int:
    rounds = 0
    never = threading.Event()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        never.wait(wait)
        done = time.process_time() + work
        while time.process_time() < done:
            pass
        rounds += 1
    return rounds


if __name__ == "__main__":
    print(main(*map(float, sys.argv[1:])))  # noqa: T201

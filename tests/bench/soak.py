"""`make soak-engine`: sizes and rate while an old transaction keeps every dead row alive.

One transaction stays open for the whole run. Meanwhile 1,000 events are sent each second, ticked, read and
acknowledged, and the queue rotates every 30 seconds. A line every ten seconds shows what grows.
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import psycopg

from tests.bench.engine import PAYLOAD, QUICK, Bench, bench

RATE = 1_000
ROTATION = "30 seconds"
REPORT_SECONDS = 10


@dataclass
class Count:
    sent: int = 0
    read: int = 0
    late: float = 0.0
    """Seconds that the producer is behind its plan."""


def _produce(connection: psycopg.Connection, stop: threading.Event, count: Count) -> None:
    begin = time.monotonic()
    while not stop.is_set():
        for _ in range(10):
            connection.execute("select pgque.send('bench', 'ticket.welcome', %s::jsonb)", [PAYLOAD])
        count.sent += 10
        ahead = begin + count.sent / RATE - time.monotonic()
        count.late = max(0.0, -ahead)
        stop.wait(max(0.0, ahead))


def _consume(connection: psycopg.Connection, stop: threading.Event, count: Count) -> None:
    while not stop.is_set():
        messages = connection.execute("select * from pgque.receive('bench', 'reader', null)").fetchall()
        if messages:
            connection.execute("select pgque.ack(%s)", [messages[0][1]])
            count.read += len(messages)
        else:
            stop.wait(0.05)


def _maintain(connection: psycopg.Connection, stop: threading.Event, count: Count) -> None:
    passes = 0
    while not stop.wait(0.1):
        connection.execute("select pgque.ticker()")
        passes += 1
        if passes % 20 == 0:
            connection.execute("select pgque.maint()")
            connection.execute("select pgque.maint_rotate_tables_step2()")


def _state(bench: Bench) -> str:
    """Sizes in MiB and dead rows, from the catalog."""
    bench.value("select pg_stat_force_next_flush()::text")
    events, others, dead_events, dead_cursors = bench.connection.execute("""
        select sum(pg_total_relation_size(relid)) filter (where relname like 'event%') / 2^20,
            sum(pg_total_relation_size(relid)) filter (where relname not like 'event%') / 2^20,
            sum(n_dead_tup) filter (where relname like 'event%'),
            sum(n_dead_tup) filter (where relname in ('subscription', 'tick'))
        from pg_stat_user_tables where schemaname = 'pgque'
    """).fetchall()[0]
    return f"{events:12.1f} {others:12.1f} {dead_events:12} {dead_cursors:14}"


def soak(bench: Bench, seconds: int) -> bool:
    bench.new_queue("reader")
    bench.value("select pgque.set_queue_config('bench', 'rotation_period', %s)", ROTATION)
    bench.value("select pgque.set_queue_config('bench', 'ticker_max_lag', '100 milliseconds')")
    old = bench.connect()
    old.autocommit = False
    old.execute("select pg_current_xact_id()")
    stop, count = threading.Event(), Count()
    roles: list[Callable[[psycopg.Connection, threading.Event, Count], None]] = [_produce, _consume, _maintain]
    rates = []
    with ThreadPoolExecutor(len(roles)) as pool:
        running = [pool.submit(role, bench.connect(), stop, count) for role in roles]
        print(f"{'s':>5} {'sent/s':>8} {'read/s':>8} {'events MiB':>12} {'others MiB':>12}"  # noqa: T201
              f" {'dead events':>12} {'dead cursors':>14}  producer late")  # fmt: skip
        for second in range(REPORT_SECONDS, seconds + 1, REPORT_SECONDS):
            before = (count.sent, count.read)
            stop.wait(REPORT_SECONDS)
            sent, read = (count.sent - before[0]) / REPORT_SECONDS, (count.read - before[1]) / REPORT_SECONDS
            rates.append(read)
            print(f"{second:5} {sent:8.0f} {read:8.0f} {_state(bench)}  {count.late:.1f} s", flush=True)  # noqa: T201
        stop.set()
        for role in running:
            role.result()
    old.rollback()
    half = len(rates) // 2
    return sum(rates[half:]) >= 0.95 * sum(rates[:half]) * (len(rates) - half) / max(half, 1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.bench.soak", description="Run the engine beside an old transaction.")
    parser.add_argument("seconds", nargs="?", type=int, default=600)
    with bench(QUICK) as one:
        return 0 if soak(one, parser.parse_args().seconds) else 1


if __name__ == "__main__":
    sys.exit(main())

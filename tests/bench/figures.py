"""The four figures of the event line."""

import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connections, transaction

from accounts.models import User
from stega import outbox
from stega.pgque import client
from tests.bench.__main__ import Figure, median_milliseconds, milliseconds
from tests.support.waiting import wait_until

WELCOME = {"user_id": 1, "email": "customer@example.com", "display_name": "Customer"}
EVENTS_TO_WARM_UP = 20
EVENTS_FOR_LATENCY = 400
EVENTS_FOR_THROUGHPUT = 100_000
EVENTS_IN_ONE_BATCH = 200_000


def latency() -> list[Figure]:
    """Send 20 events a second and let a worker say how old each was when its handler was called.

    At random moments: an even rhythm would stay in step with the ticker's. The first few, which find the processes'
    connections cold, are not counted.
    """
    moments = random.Random(20)
    round_trip = median_milliseconds([timed(lambda: client.version()) for _ in range(200)])
    with _ticker(), _worker(EVENTS_TO_WARM_UP + EVENTS_FOR_LATENCY) as worker:
        for number in range(EVENTS_TO_WARM_UP + EVENTS_FOR_LATENCY):
            _pause_until(worker.started + (number + moments.random()) / 20)
            payload = WELCOME | {"sent": time.time()}
            client.insert_event(settings.PGQUE_QUEUE, "ticket.welcome", payload, str(uuid.uuid4()))
        latencies = worker.result()["latencies"][EVENTS_TO_WARM_UP:]
    p50, p99 = milliseconds(latencies, 0.5), milliseconds(latencies, 0.99)
    limit = f"one query: {round_trip:.2f} ms; a tick each {settings.PGQUE_TICK_SECONDS * 1000:g} ms"
    return [
        Figure("send to handler at 20 events/s, p50", f"{p50:.1f} ms", "<= 15 ms", p50 <= 15, limit),
        Figure("send to handler at 20 events/s, p99", f"{p99:.1f} ms", "<= 50 ms", p99 <= 50, limit),
    ]


def throughput() -> list[Figure]:
    """Let a worker whose handler does nothing empty a queue that was filled before it starts."""
    _send(EVENTS_FOR_THROUGHPUT, chunk=1_000, ticks=True)
    with _worker(EVENTS_FOR_THROUGHPUT) as worker:
        first, last = worker.result()["moments"]
    rate = EVENTS_FOR_THROUGHPUT / (last - first)
    raw = EVENTS_FOR_THROUGHPUT / timed(_read_as_many_rows)
    limit = f"plain select, fetched and parsed: {raw:,.0f} rows/s ({rate / raw:.2f})"
    return [Figure("notification worker, empty handler", f"{rate:,.0f} events/s", ">= 5,000", rate >= 5_000, limit)]


def enqueue_cost() -> list[Figure]:
    """What enqueueing adds to a transaction of a request, the relay to `jobs` included; interleaved, medians."""
    user = User.objects.create_user(username="bench", email="bench@example.com")

    def change(task: bool) -> None:
        with transaction.atomic():
            User.objects.filter(pk=user.pk).update(display_name="bench")
            if task:
                outbox.enqueue("send_welcome_notification", user.pk)

    for _ in range(20):
        change(True)
    pairs = [(timed(lambda: change(False)), timed(lambda: change(True))) for _ in range(300)]
    without, with_task = (median_milliseconds(list(column)) for column in zip(*pairs, strict=True))
    added = with_task - without
    limit = f"the same transaction without: {without:.2f} ms"
    return [Figure("enqueueing adds to a request, median", f"{added:.2f} ms", "<= 3 ms", added <= 3, limit)]


def memory() -> list[Figure]:
    """The worker's peak memory on one batch of 200,000 events."""
    with _worker(1) as worker:
        _send(1, chunk=1, ticks=True)
        idle = worker.result()["peak_mib"]
    _send(EVENTS_IN_ONE_BATCH, chunk=1_000, ticks=False)
    with _worker(EVENTS_IN_ONE_BATCH) as worker:
        peak = worker.result()["peak_mib"]
    limit = f"the worker on a batch of one event: {idle:.0f} MiB"
    return [Figure("worker on one batch of 200,000 events", f"{peak:.0f} MiB", "<= 120 MiB", peak <= 120, limit)]


class _Worker:
    def __init__(self, expected: int) -> None:
        command = [sys.executable, "-m", "tests.bench.worker", str(expected)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._lines = iter(self._process.stdout)
        assert next(self._lines).strip() == "ready"
        self.started = time.time() + 0.5

    def result(self) -> Any:
        return json.loads(next(self._lines))

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def _worker(expected: int) -> Iterator[_Worker]:
    worker = _Worker(expected)
    try:
        yield worker
    finally:
        worker.end()


@contextmanager
def _ticker() -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "pgque_ticker"], env=os.environ | {"PYTHONUNBUFFERED": "1"}
    )
    try:
        wait_until(_someone_ticks, timeout=30)
        yield
    finally:
        process.terminate()
        process.wait()


def _someone_ticks() -> bool:
    with connections["events"].cursor() as cursor:
        cursor.execute("select exists (select from pg_stat_activity where application_name = 'pgque_ticker')")
        return bool(cursor.fetchone()[0])


def _send(count: int, *, chunk: int, ticks: bool) -> None:
    """Send so many events, with a tick after each chunk or one at the end."""
    payload = json.dumps(WELCOME)
    for _ in range(0, count, chunk):
        client.send_batch(settings.PGQUE_QUEUE, "ticket.welcome", [payload] * chunk)
        if ticks:
            tick()
    tick()


def tick() -> None:
    client.force_next_tick(settings.PGQUE_QUEUE)
    client.ticker()


def _read_as_many_rows() -> None:
    with connections["events"].chunked_cursor() as cursor:
        cursor.execute(
            "select n, now(), n, 1, 'ticket.welcome', %s, null, null, null, null from generate_series(1, %s) n",
            [json.dumps(WELCOME), EVENTS_FOR_THROUGHPUT],
        )
        while rows := cursor.fetchmany(settings.CONSUMER_PAGE_SIZE):
            for row in rows:
                json.loads(row[5])


def timed(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def _pause_until(moment: float) -> None:
    wait_until(lambda: time.time() >= moment, timeout=60, interval=0.001)

"""The figures of telling people: real workers, a mail server in a process of its own."""

import json
import os
import smtplib
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from typing import Any

import psutil
from django.conf import settings
from django.db import connections

from notifications.models import Delivery, State
from stega.pgque import client
from tests.bench.__main__ import Figure
from tests.bench.figures import tick, timed
from tests.factories import make_product, make_ticket, make_user
from tests.support.waiting import wait_until

MAILS = 1_000
BREACHES_EACH = 500
BREACHES_IN_A_BATCH = 10
RECEIVER_SECONDS = 0.010
LOOP_SECONDS = 3.0


class _Sink:
    def __init__(self, seconds: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.sink", str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def end(self) -> Any:
        output, _ = self._process.communicate()
        return json.loads(output)


def mails() -> list[Figure]:
    """Mails of one notification worker per second, and over how many connections."""
    person = make_user("bench-mail")
    payload = {"user_id": person.pk, "email": person.email, "display_name": person.display_name}
    sink = _Sink(0)
    with _workers(1, "notification_worker", sink.port):
        rate = _told(MAILS, "ticket.welcome", payload, batch=100)
    raw = MAILS / timed(lambda: _send_bare_mails(sink.port))
    connections_made = sink.end()["connections"] - 1
    limit = f"smtplib alone, one connection: {raw:,.0f} mails/s ({rate / raw:.2f})"
    return [
        Figure("mails through one notification worker", f"{rate:,.0f} mails/s", "", True, limit),
        Figure(
            f"connections for {MAILS:,} mails", f"{connections_made}", "<= 5", connections_made <= 5, "one at the least"
        ),
    ]


def members() -> list[Figure]:
    """Mails about breaches by 1, 2 and 4 members of the group, into a receiver that takes 10 ms for each.

    So many for each member, and measured in the middle of the run: neither sending them costs then, nor does anybody
    wait for the last who still has a batch. The limit is what loops of the same work gain on the same cores.
    """
    agent = make_user("bench-agent")
    ticket = make_ticket(agent, make_product("Bench"), assignee=agent)
    payload = {
        "ticket_id": ticket.pk,
        "title": "Bench",
        "priority": "high",
        "product_name": "Bench",
        "elapsed_hours": 1,
    }
    rates = {}
    work = 0.0
    for count in (1, 2, 4):
        sink = _Sink(RECEIVER_SECONDS)
        with _workers(count, "sla_breach_worker", sink.port), _cpu() as spent:
            rates[count] = _told(count * BREACHES_EACH, "ticket.sla_breached", payload, batch=BREACHES_IN_A_BATCH)
            work = work or spent() / (count * BREACHES_EACH)
        sink.end()
    rounds = {count: _rounds(count, work) for count in (1, 2, 4)}
    return [
        Figure(
            "one SLA worker, 10 ms receiver",
            f"{rates[1]:,.0f} mails/s",
            "",
            True,
            f"receiver: {1 / RECEIVER_SECONDS:.0f}; each mail costs {work * 1000:.1f} ms of a core",
        ),
        *(_gain(count, rates, rounds, goal) for count, goal in ((2, 0.0), (4, 3.5))),
    ]


def _gain(count: int, rates: dict[int, float], rounds: dict[int, int], goal: float) -> Figure:
    gain, limit = rates[count] / rates[1], rounds[count] / rounds[1]
    return Figure(
        f"{count} SLA workers against one",
        f"{gain:.2f} times",
        f">= {goal:g}" if goal else "",
        gain >= goal,
        f"{count} loops of that work on {os.cpu_count()} cores: {limit:.2f} times ({gain / limit:.2f})",
    )


@contextmanager
def _cpu() -> Iterator[Callable[[], float]]:
    """How many seconds the cores of this machine have worked since, this process apart."""

    def worked() -> float:
        times, own = psutil.cpu_times(), psutil.Process().cpu_times()
        return float(times.user + times.system - own.user - own.system)

    begin = worked()
    yield lambda: worked() - begin


def _rounds(count: int, work: float) -> int:
    command = [sys.executable, "-m", "tests.bench.loop", str(RECEIVER_SECONDS), str(work), str(LOOP_SECONDS)]
    loops = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return sum(int(loop.communicate()[0]) for loop in loops)


@contextmanager
def _workers(count: int, command: str, port: int) -> Iterator[None]:
    env = {**os.environ, "EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": str(port)}
    workers = [subprocess.Popen([sys.executable, "manage.py", command], env=env) for _ in range(count)]
    try:
        wait_until(lambda: _at_work(command) >= count, timeout=60)
        yield
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()


def _at_work(command: str) -> int:
    """How many instances have begun: members of the group, or sessions of the plain worker."""
    if command == "sla_breach_worker":
        return sum("." in row["consumer_name"] for row in client.consumer_info())
    with connections["events"].cursor() as cursor:
        cursor.execute("select count(*) from pg_stat_activity where application_name = %s", [command])
        return int(cursor.fetchone()[0])


def _told(count: int, event_type: str, payload: dict[str, Any], *, batch: int) -> float:
    """Send so many events, each with a key of its own; how many were told per second, from a quarter to nine tenths."""
    Delivery.objects.all().delete()
    for number in range(1, count + 1):
        client.insert_event(settings.PGQUE_QUEUE, event_type, payload, str(uuid.uuid4()))
        if number % batch == 0:
            tick()
    sent = Delivery.objects.filter(state=State.SENT)
    wait_until(lambda: sent.count() == count, timeout=180, interval=0.2)
    moments = [moment.timestamp() for moment in sent.order_by("sent_at").values_list("sent_at", flat=True) if moment]
    steady = moments[count // 4 : count * 9 // 10]
    return (len(steady) - 1) / (steady[-1] - steady[0])


def _send_bare_mails(port: int) -> None:
    message = EmailMessage()
    message["Subject"] = message["From"] = message["To"] = "bench@example.com"
    message.set_content("It is broken.\n" * 20)
    message.add_alternative("<p>It is broken.</p>\n" * 60, subtype="html")
    with smtplib.SMTP("127.0.0.1", port) as server:
        for _ in range(MAILS):
            server.send_message(message)

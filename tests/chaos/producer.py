"""The producer: stands for the web, and for the task worker where that is told to publish straight.

    python -m tests.chaos.producer SEED THROUGH_OUTBOX STRAIGHT JOURNAL

THROUGH_OUTBOX facts a second are written as people write them, by the actions of the help desk, and are told by the
outbox. STRAIGHT events a second are published as a task does it, again and again until `events` takes them. Poison is
among both. What has no row on `default` to speak for it goes to JOURNAL, one JSON line before and one after.
"""

import json
import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any

import django
from django.db import DatabaseError, InterfaceError, connections, transaction

POISON_SHARE = 0.02
WELCOME_SHARE = 0.2
"""Of what is published straight: as many mails as one worker tells beside everything else. The rest is for nobody."""
STORIES = 20
"""Tickets that go on at the same time."""
SCAN_SECONDS = 2.0
AFTER_FAILURE_SECONDS = 0.2

Story = Generator[None]


class Journal:
    """Lines that outlive the process, appended whole; several processes may append."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_WRONLY | os.O_CREAT)

    def write(self, **entry: Any) -> None:
        os.write(self._file, f"{json.dumps(entry)}\n".encode())


class Web:
    """Facts through the outbox: tickets that live from their opening to their end, and welcomes."""

    def __init__(self, chance: random.Random, journal: Journal) -> None:
        from accounts.models import User
        from tests.chaos.facts import UNTELLABLE
        from tickets.models import Product

        self.chance = chance
        self.journal = journal
        people = list(User.objects.order_by("pk"))
        self.customers, self.agents, self.admins, self.untellable = (
            [user for user in people if user.username.startswith(prefix)]
            for prefix in ("customer-", "agent-", "admin-", UNTELLABLE)
        )
        *self.products, self.gone = Product.objects.order_by("pk")
        self.stories: list[Story] = []
        self.scan_at = 0.0

    def happen(self) -> None:
        """One fact, or one in a while a scan for breaches, which makes several. A database that is away raises."""
        if time.monotonic() >= self.scan_at:
            self._scan()
        dice = self.chance.random()
        if dice < POISON_SHARE:
            self._poison()
        elif dice < 0.3:
            self._welcome(self.chance.choice(self.customers).pk)
        elif dice < 0.4:
            self._late_ticket(self.chance.choice(self.products))
        else:
            self._go_on()

    def _scan(self) -> None:
        from tickets.tasks import check_sla_breaches

        self.scan_at = time.monotonic() + SCAN_SECONDS
        check_sla_breaches()

    def _welcome(self, user_id: int) -> None:
        from stega import outbox

        key = uuid.uuid4()
        with transaction.atomic():
            outbox.enqueue("send_welcome_notification", user_id, key=key)
        self.journal.write(promised=str(key))

    def _late_ticket(self, product: Any) -> None:
        from tickets import actions
        from tickets.models import Ticket

        with transaction.atomic():
            ticket = actions.open_ticket(self.chance.choice(self.customers), product, "Too late", "It burns.", "high")
            Ticket.objects.filter(pk=ticket.pk).update(sla_due_at=ticket.created_at - timedelta(minutes=1))

    def _go_on(self) -> None:
        """Take one of the stories a step further. One that was cut by an outage is over."""
        if len(self.stories) < STORIES:
            self.stories.append(self._story())
        story = self.chance.choice(self.stories)
        try:
            next(story)
        except BaseException as error:
            self.stories.remove(story)
            if not isinstance(error, StopIteration):
                raise

    def _story(self) -> Story:
        from tickets import actions

        customer, agent = self.chance.choice(self.customers), self.chance.choice(self.agents)
        ticket = actions.open_ticket(customer, self.chance.choice(self.products), "It is broken", "Again.", "medium")
        yield
        actions.assign(self.chance.choice(self.admins), ticket.pk, agent)
        yield
        for number in range(3):
            actions.comment(agent, ticket.pk, f"Question {number}")
            yield
            actions.comment(customer, ticket.pk, f"Answer {number}")
            yield
        actions.change_status(agent, ticket.pk, "in_progress")
        yield
        actions.change_status(agent, ticket.pk, "resolved")

    def _poison(self) -> None:
        """A fact that somebody cannot be told of, or a task that fails by its own fault."""
        from stega import outbox
        from tests.chaos.facts import BAD_ARGUMENTS

        dice = self.chance.randrange(5)
        if dice == 0:
            self._late_ticket(self.gone)
        elif dice == 1:
            with transaction.atomic():
                outbox.enqueue("publish_ticket_resolved", *BAD_ARGUMENTS)
        else:
            self._welcome(self.chance.choice(self.untellable).pk)


class Tasks:
    """Events published as a task does it; and poison that no task would publish."""

    def __init__(self, chance: random.Random, journal: Journal, users: list[int]) -> None:
        self.chance = chance
        self.journal = journal
        self.users = users

    def happen(self) -> None:
        key, user_id, dice = uuid.uuid4(), self.chance.choice(self.users), self.chance.random()
        if dice < POISON_SHARE:
            self._poison(key)
        elif dice < POISON_SHARE + WELCOME_SHARE:
            self._welcome(key, user_id)
        else:
            self._created(key)

    def _welcome(self, key: uuid.UUID, user_id: int) -> None:
        from stega.pgque.publishing import publish

        payload = {"user_id": user_id, "email": "x@example.com", "display_name": "Customer"}
        self.journal.write(welcome=str(key), user=user_id)
        _insist(lambda: publish("ticket.welcome", payload, key))
        self.journal.write(published=str(key))

    def _created(self, key: uuid.UUID) -> None:
        from stega.pgque.publishing import publish

        payload = {"ticket_id": 0, "title": "It is broken", "priority": "low", "product_name": "Product"}
        _insist(lambda: publish("ticket.created", payload, key))
        self.journal.write(published=str(key))

    def _poison(self, key: uuid.UUID) -> None:
        from django.conf import settings

        from stega.pgque import client

        poison: list[tuple[str, Any]] = [
            ("ticket.exploded", {"ticket_id": 1}),
            ("ticket.welcome", [1, 2]),
            ("ticket.welcome", {"user_id": 1}),
            ("ticket.welcome", {"user_id": "1", "email": "", "display_name": ""}),
            ("ticket.sla_breached", "text"),
        ]
        event_type, payload = self.chance.choice(poison)
        self.journal.write(poison=str(key), type=event_type)
        _insist(lambda: client.insert_event(settings.PGQUE_QUEUE, event_type, payload, str(key)))
        self.journal.write(published=str(key))


def _insist(publish: Callable[[], object]) -> None:
    pause = threading.Event()
    while True:
        try:
            publish()
            return
        except (DatabaseError, InterfaceError):
            connections["events"].close()
            pause.wait(AFTER_FAILURE_SECONDS)


def _keep_up(rate: float, happen: Callable[[], None]) -> None:
    """Let `rate` facts a second happen for ever; what a database that was away cost is not caught up with."""
    pause = threading.Event()
    due_at = time.monotonic()
    while rate:
        due_at += 1 / rate
        try:
            happen()
        except (DatabaseError, InterfaceError):
            connections.close_all()
            pause.wait(AFTER_FAILURE_SECONDS)
        now = time.monotonic()
        pause.wait(max(0.0, due_at - now))
        due_at = max(due_at, now - 1)


def main(seed: int, through_outbox: float, straight: float, path: str) -> None:
    django.setup()
    chance, journal = random.Random(seed + os.getpid()), Journal(path)
    web = Web(chance, journal)
    tasks = Tasks(random.Random(chance.random()), journal, [user.pk for user in web.customers])
    threading.Thread(target=_keep_up, args=[straight, tasks.happen], name="tasks", daemon=True).start()
    print("producing", flush=True)  # noqa: T201
    _keep_up(through_outbox, web.happen)
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4])

"""Random interleavings of all that producers, tickers, maintenance, consumers and groups do, against a model.

The model knows what the engine may not get wrong: which events each window holds, to the last one. A tick divides what
was committed before its snapshot from what comes later; a window holds what lies between two ticks and is meant for the
reader. So every committed event comes, no other one does, in the order of ticks, and once unless its batch was never
acknowledged. PGQUE_MODEL_EXAMPLES says how many histories are tried; only then a failing one is made as short as can
be, which takes minutes.
"""

import os
import uuid
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

EXAMPLES = os.environ.get("PGQUE_MODEL_EXAMPLES")
MAX_RETRIES = 2
READERS = {"plain": "plain", "other": "other", "group.a": "group", "group.b": "group", "group.c": "group"}
"""Reader -> whose events it gets: the members of a group share them."""


NACK = "select pgque.nack(%s, row(%s,null,null,null,null,null,null,null,null,null)::pgque.message, '0')"


@dataclass(frozen=True)
class Event:
    """A row of an event table; `epoch` counts the snapshots of ticks that were taken before it was committed."""

    id: int
    payload: str
    epoch: int
    retry: int | None = None
    owner: str | None = None


@dataclass(frozen=True)
class Batch:
    id: int
    start: int
    end: int
    events: tuple[Event, ...]


@dataclass
class Transaction:
    """A producer's transaction, or a reader's."""

    connection: psycopg.Connection
    is_open: bool = False
    sent: list[tuple[int, str]] = field(default_factory=list)
    batch: Batch | None = None


class History(RuleBasedStateMachine):
    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.queue = f"m.{uuid.uuid4().hex[:10]}"
        self.sql = self.connect(autocommit=True)
        self.ticking = self.connect()
        self.producers = [Transaction(self.connect()) for _ in range(3)]
        self.readers = {name: Transaction(self.connect()) for name in READERS}
        self.events: list[Event] = []
        self.epoch = 0
        self.ticks: list[tuple[int, int]] = []
        self.tick_in_work: tuple[int, int] | None = None
        self.held: dict[str, Batch] = {}
        self.done: dict[str, list[tuple[int, int]]] = {owner: [] for owner in READERS.values()}
        self.waiting: dict[tuple[str, int], Event] = {}
        self.dead: set[tuple[str, int]] = set()

    def connect(self, autocommit: bool = False) -> psycopg.Connection:
        connection = psycopg.connect(self.url, autocommit=autocommit, options="-c lock_timeout=200ms")
        connection.prepare_threshold = None
        return connection

    def value(self, sql: str, *params: Any) -> Any:
        return self.sql.execute(sql, params).fetchone()[0]

    @initialize()
    def create(self) -> None:
        self.value("select pgque.create_queue(%s)", self.queue)
        self.value("select pgque.set_queue_config(%s, 'max_retries', %s)", self.queue, str(MAX_RETRIES))
        for consumer in ("plain", "other"):
            self.value("select pgque.subscribe(%s, %s)", self.queue, consumer)
        for member in "abc":
            self.value("select pgque.subscribe_subconsumer(%s, 'group', %s)", self.queue, member)
        self.ticks.append((0, self.value("select max(last_tick_id) from pgque.get_queue_info(%s)", self.queue)))

    # Producers.

    @rule(number=st.integers(0, 2), old_snapshot=st.booleans(), writes=st.booleans())
    def begin(self, number: int, old_snapshot: bool, writes: bool) -> None:
        producer = self.producers[number]
        if not producer.is_open:
            level = psycopg.IsolationLevel.REPEATABLE_READ if old_snapshot else psycopg.IsolationLevel.READ_COMMITTED
            producer.connection.isolation_level = level
            producer.connection.execute("select from pgque.queue")
            if writes:
                producer.connection.execute("select pg_current_xact_id()")
            producer.is_open = True

    @rule(number=st.integers(0, 2), count=st.integers(1, 3), undone=st.booleans(), at_once=st.booleans())
    def send(self, number: int, count: int, undone: bool, at_once: bool) -> None:
        self.begin(number, False, False)
        producer = self.producers[number]
        payloads = [uuid.uuid4().hex[:8] for _ in range(count)]
        producer.connection.execute("savepoint before")
        try:
            rows = producer.connection.execute(
                "select pgque.send_batch(%s, 't', %s::text[])"
                if at_once
                else "select array_agg(pgque.send(%s, 't', p)) from unnest(%s::text[]) p",
                [self.queue, payloads],
            ).fetchone()
        except psycopg.errors.LockNotAvailable:
            undone = True
        if undone:
            producer.connection.execute("rollback to savepoint before")
        else:
            producer.sent += zip(rows[0], payloads, strict=True)

    @rule(number=st.integers(0, 2), commits=st.sampled_from([True, True, True, False]))
    def end(self, number: int, commits: bool) -> None:
        producer = self.producers[number]
        if commits:
            producer.connection.commit()
            self.events += [Event(ev_id, payload, self.epoch) for ev_id, payload in producer.sent]
        else:
            producer.connection.rollback()
        producer.sent.clear()
        producer.is_open = False

    @precondition(lambda self: self.tick_in_work is None)
    @rule(number=st.integers(0, 2), count=st.integers(1, 3))
    def publish(self, number: int, count: int) -> None:
        """Send, commit and tick, as most events come."""
        self.send(number, count, False, False)
        self.end(number, True)
        self.tick()

    # The ticker and maintenance.

    @precondition(lambda self: self.tick_in_work is None)
    @rule()
    def tick(self) -> None:
        self.begin_tick()
        self.end_tick(True)

    @precondition(lambda self: self.tick_in_work is None)
    @rule()
    def begin_tick(self) -> None:
        self.ticking.execute("select pgque.force_next_tick(%s)", [self.queue])
        tick_id = self.ticking.execute("select pgque.ticker(%s)", [self.queue]).fetchone()[0]
        assert tick_id > self.ticks[-1][1]
        self.epoch += 1
        self.tick_in_work = (self.epoch, tick_id)

    @precondition(lambda self: self.tick_in_work is not None)
    @rule(commits=st.booleans())
    def end_tick(self, commits: bool) -> None:
        if commits:
            self.ticking.commit()
            self.ticks.append(self.tick_in_work)
        else:
            self.ticking.rollback()
        self.tick_in_work = None

    @rule(times=st.integers(1, 3), completely=st.sampled_from([True, True, False]))
    def rotate(self, times: int, completely: bool) -> None:
        for _ in range(times):
            self.sql.execute(
                "update pgque.queue set queue_switch_time = now() - interval '1 day' where queue_name = %s",
                [self.queue],
            )
            self.value("select pgque.maint_rotate_tables_step1(%s)", self.queue)
            if completely:
                self.value("select pgque.maint_rotate_tables_step2()")

    @rule()
    def bring_retries_back(self) -> None:
        moved = self.value("select pgque.maint_retry_events()")
        assert moved == len(self.waiting)
        self.events += [
            Event(event.id, event.payload, self.epoch, event.retry, event.owner) for event in self.waiting.values()
        ]
        self.waiting.clear()

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        owner, ev_id = data.draw(st.sampled_from(sorted(self.dead)))
        [letter] = self.sql.execute(
            "select dl_id, ev_data from pgque.dlq_inspect(%s) join pgque.consumer on co_id = dl_consumer_id"
            " where co_name = %s and ev_id = %s",
            [self.queue, owner, ev_id],
        ).fetchall()
        new_id = self.value("select pgque.dlq_replay(%s)", letter[0])
        self.events.append(Event(new_id, letter[1], self.epoch, None, owner))
        self.dead.remove((owner, ev_id))

    # Consumers and members of a group.

    @rule(name=st.sampled_from(sorted(READERS)), takes_over=st.booleans())
    def receive(self, name: str, takes_over: bool) -> None:
        reader = self.readers[name]
        if reader.is_open:
            return
        reader.is_open = True
        consumer, _, member = name.partition(".")
        if member:
            call = "select * from pgque.receive_coop(%s, %s, %s, null, %s::interval)"
            params = [self.queue, consumer, member, "0 seconds" if takes_over else None]
        else:
            call, params = "select * from pgque.receive(%s, %s, null)", [self.queue, consumer]
        try:
            messages = reader.connection.execute(call, params).fetchall()
        except psycopg.errors.LockNotAvailable:
            return self.crash(name)
        if not messages:
            # Windows without events were finished on the way.
            reader.connection.commit()
            reader.is_open = False
            self.held.pop(name, None)
            return
        self.check(name, messages)

    def check(self, name: str, messages: list[tuple[Any, ...]]) -> None:
        """The batch holds what the model says, in the order of ids."""
        reader = self.readers[name]
        start, end = reader.connection.execute(
            "select prev_tick_id, tick_id from pgque.get_batch_info(%s)", [messages[0][1]]
        ).fetchone()
        expected = self.window(READERS[name], start, end)
        got = [(message[0], message[3], message[4]) for message in messages]
        assert got == [(event.id, event.payload, event.retry) for event in expected], (name, start, end)
        if name in self.held and self.held[name].id == messages[0][1]:
            assert (start, end) == (self.held[name].start, self.held[name].end)
        assert all(end <= first or start >= last for first, last in self.done[READERS[name]]), "finished already"
        reader.batch = Batch(messages[0][1], start, end, tuple(expected))

    def window(self, owner: str, start: int, end: int) -> list[Event]:
        found = [event for event in self.events if event.owner in (None, owner) and start < self.tick_of(event) <= end]
        return sorted(found, key=lambda event: event.id)

    def tick_of(self, event: Event) -> float:
        return next((tick_id for epoch, tick_id in self.ticks if epoch > event.epoch), float("inf"))

    @rule(name=st.sampled_from(sorted(READERS)), nacks=st.integers(0, 7), acks=st.sampled_from([True, True, False]))
    def finish(self, name: str, nacks: int, acks: bool) -> None:
        """Nack some of the messages, and ack or die before it; all that was done is committed."""
        reader = self.readers[name]
        if not reader.is_open or reader.batch is None:
            return
        batch, refused = reader.batch, []
        try:
            for number, event in enumerate(batch.events):
                if nacks >> (number % 3) & 1:
                    refused.append(event)
                    reader.connection.execute(NACK, [batch.id, event.id])
            acked = acks and reader.connection.execute("select pgque.ack(%s)", [batch.id]).fetchone()[0]
            reader.connection.commit()
        except psycopg.errors.LockNotAvailable:
            return self.crash(name)
        reader.is_open, reader.batch = False, None
        self.take(name, batch)
        for event in refused:
            self.refuse(READERS[name], event)
        if acks:
            assert acked == 1
            del self.held[name]
            self.done[READERS[name]].append((batch.start, batch.end))

    def take(self, name: str, batch: Batch) -> None:
        """The batch is this reader's now, and nobody else's."""
        others = [one for one in self.held if one != name and READERS[one] == READERS[name]]
        for other in others:
            if self.held[other].end > batch.start and batch.end > self.held[other].start:
                assert self.held[other].id != batch.id
                lost = self.held.pop(other)
                if not self.readers[other].is_open:
                    assert self.value("select pgque.ack(%s)", lost.id) == 0
        self.held[name] = batch

    def refuse(self, owner: str, event: Event) -> None:
        if (event.retry or 0) >= MAX_RETRIES:
            self.dead.add((owner, event.id))
        else:
            retried = Event(event.id, event.payload, 0, (event.retry or 0) + 1, owner)
            self.waiting.setdefault((owner, event.id), retried)

    @rule(name=st.sampled_from(sorted(READERS)), takes_over=st.booleans(), nacks=st.integers(0, 7))
    def work(self, name: str, takes_over: bool, nacks: int) -> None:
        """A whole batch at once, as most readers do it."""
        self.receive(name, takes_over)
        self.finish(name, nacks, True)

    @rule(name=st.sampled_from(sorted(READERS)))
    def crash(self, name: str) -> None:
        """The connection breaks, and all that was not committed with it."""
        self.readers[name].connection.close()
        self.readers[name] = Transaction(self.connect())

    def teardown(self) -> None:
        try:
            if self.ticks:
                self.read_to_the_end()
        finally:
            self.close()

    def read_to_the_end(self) -> None:
        for number in range(3):
            self.end(number, True)
        for name, reader in self.readers.items():
            reader.connection.rollback()
            reader.is_open, reader.batch = False, None
            assert name in READERS
        if self.tick_in_work:
            self.end_tick(True)
        self.bring_retries_back()
        self.tick()
        for name in READERS:
            while True:
                self.receive(name, True)
                if self.readers[name].batch is None:
                    break
                self.finish(name, 0, True)
        for owner, windows in self.done.items():
            for event in self.events:
                if event.owner in (None, owner):
                    assert sum(start < self.tick_of(event) <= end for start, end in windows) == 1, (owner, event)
        letters = self.sql.execute(
            "select co_name, ev_id from pgque.dlq_inspect(%s, 1000) join pgque.consumer on co_id = dl_consumer_id",
            [self.queue],
        ).fetchall()
        assert set(letters) == self.dead

    def close(self) -> None:
        for one in [*self.producers, *self.readers.values()]:
            one.connection.close()
        self.ticking.close()
        self.sql.execute(
            "select pgque.drop_queue(queue_name, true) from pgque.queue where queue_name = %s", [self.queue]
        )
        self.sql.close()


@pytest.mark.timeout(0 if EXAMPLES else 240)
def test_every_history_delivers_what_the_model_says(url):
    machine = type("HistoryHere", (History,), {"url": url})
    phases = [phase for phase in Phase if EXAMPLES or phase is not Phase.shrink]

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=int(EXAMPLES or 30),
            phases=phases,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

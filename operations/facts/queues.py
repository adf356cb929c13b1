"""Queues, consumers and members of the event log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from operations.facts.reading import COUNT_LIMIT, Question
from operations.facts.sessions import Session, others_are_hidden, sessions
from stega.database import clock
from stega.database.pooling import is_pooled
from stega.pgque import client, oversight
from stega.pgque.catalogue import SLA_BREACH_DISPATCHER
from stega.pgque.neglect import rotation_blockers

LEEWAY = timedelta(seconds=5)
"""How much later than its idle period an idle queue's tick may come."""


def _idle_silence() -> timedelta:
    """How long a living member that has nothing to do may seem silent: the engine notes its polls each 10 s."""
    return timedelta(seconds=10 + 10 * settings.CONSUMER_POLL_SECONDS)


@dataclass(frozen=True, slots=True)
class Queue:
    """Counts end at COUNT_LIMIT. `ticker_lag` and `last_tick` are None for a queue that never had a tick."""

    name: str
    ticker_lag: timedelta | None
    idle_period: timedelta
    last_tick: int | None
    events_per_second: float | None
    events_after_tick: int
    current_table: int
    rotation_period: timedelta
    rotated_ago: timedelta
    waits_for: tuple[str, ...] | None
    """The consumers that hold its overdue rotation up, none for an old transaction; None when nothing is overdue."""
    is_paused: bool
    """No ticks by our ticker: paused, or ticked from outside."""
    bytes: int
    retries: int
    dead_letters: int
    new_dead_letters: int
    """Those that appeared within DEAD_LETTER_ALERT_SECONDS."""
    last_dead_letter_at: datetime | None
    max_retries: int
    """Deliveries of an event after the first, before it is a dead letter."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits for a tick, so that the next one may be as far away as the idle period says."""
        has_ticks = self.ticker_lag is not None and self.ticker_lag <= self.idle_period + LEEWAY
        return has_ticks and not self.events_after_tick and not self.is_paused


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer, a group, or (with `member`) a member of the group `name`."""

    queue: str
    name: str
    member: str | None
    is_group: bool
    tick_age: timedelta | None
    """Age of the last finished tick, which grows while nothing is sent: not the lag."""
    pending: int | None
    """Events between the cursor and the newest tick."""
    lag: timedelta | None
    """How long the first tick after the cursor has waited for the consumer; None when there is none."""
    last_seen: timedelta
    open_batch: int | None
    sessions: tuple[Session, ...] | None
    """The processes of its name on the events database; None when a pooler hides them, and for members."""
    unticked: int = 0
    """Events after the newest tick: they wait too, for a ticker first."""
    is_gone: bool = False
    """Of a member: whether its process is known to be gone."""
    is_missed: bool = False
    """Of a member: whether events wait for its group, or in a batch that it holds."""

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to do, so that it may well have been silent since.

        A member that has nothing to do still asks for a batch at each poll: without that it is not idle but silent.
        """
        patience = _idle_silence() if self.member else timedelta(seconds=settings.SLA_DEAD_INTERVAL_SECONDS)
        is_there = self.sessions != () and self.last_seen <= patience
        return is_there and self.open_batch is None and not self.behind

    @property
    def is_silent(self) -> bool:
        """Whether a member has given no sign of life for so long that it has lost its batch."""
        return self.member is not None and self.last_seen > timedelta(seconds=settings.SLA_DEAD_INTERVAL_SECONDS)

    @property
    def behind(self) -> int | None:
        return None if self.pending is None else self.pending + self.unticked


@dataclass(frozen=True, slots=True)
class Queues:
    at: datetime
    queues: tuple[Queue, ...]
    consumers: tuple[Consumer, ...]


def question() -> Question[Queues]:
    return Question("events", _ask)


def sessions_are_visible() -> bool:
    """Whether each process's own session can be told on the events database: not through a pooler alone, nor when
    the sessions of other roles are hidden.
    """
    if others_are_hidden("events"):
        return False
    if settings.EVENTS_DIRECT_DATABASE is not None:
        return True
    return not settings.EVENTS_POOLED and not is_pooled("events")


def _ask() -> Queues:
    queues, consumers = client.queue_info(), client.consumer_info()
    space = {
        row["queue_name"]: row
        for row in oversight.queue_space(COUNT_LIMIT, timedelta(seconds=settings.DEAD_LETTER_ALERT_SECONDS))
    }
    places = {(row["queue_name"], row["consumer_name"]): row for row in oversight.consumer_places()}
    blocked = rotation_blockers(queues, consumers, timedelta(seconds=2 * settings.PGQUE_MAINTENANCE_SECONDS))
    present = sessions("events") if sessions_are_visible() else None
    unticked = {row["queue_name"]: row["ev_new"] or 0 for row in queues}
    return Queues(
        clock.now("events"),
        tuple(_queue(row, space[row["queue_name"]], blocked) for row in queues if row["queue_name"] in space),
        with_missing_members(
            _consumer(row, places[place], present, unticked.get(row["queue_name"], 0))
            for row in consumers
            if (place := (row["queue_name"], row["consumer_name"])) in places
        ),
    )


def with_missing_members(consumers: Iterable[Consumer]) -> tuple[Consumer, ...]:
    """The consumers, with what their groups tell of members: who is gone, and whether anything waits for them.

    A living process of ours has a session of its group's name, maybe two: of more members than sessions, those that
    were silent for longest are gone, unless their silence is that of idleness or of a session that is opened anew.
    """
    consumers = tuple(consumers)
    groups = {(each.queue, each.name): each for each in consumers if each.is_group}
    gone = {each for group in groups.values() for each in _gone_members(group, consumers)}

    def told(member: Consumer) -> Consumer:
        group = groups.get((member.queue, member.name))
        waits = member.open_batch is not None or bool(group and group.behind)
        return replace(member, is_gone=member in gone, is_missed=waits)

    return tuple(told(each) if each.member else each for each in consumers)


def _gone_members(group: Consumer, consumers: Iterable[Consumer]) -> list[Consumer]:
    if group.name != SLA_BREACH_DISPATCHER or group.sessions is None:
        return []
    members = [each for each in consumers if each.member and (each.queue, each.name) == (group.queue, group.name)]
    members.sort(key=lambda each: each.last_seen, reverse=True)
    surplus = max(0, len(members) - len(group.sessions))
    return [each for each in members[:surplus] if each.last_seen > _idle_silence()]


def _queue(row: Mapping[str, Any], space: Mapping[str, Any], blocked: Mapping[str, list[str]]) -> Queue:
    name = row["queue_name"]
    return Queue(
        name=name,
        ticker_lag=row["ticker_lag"],
        idle_period=row["queue_ticker_idle_period"],
        last_tick=row["last_tick_id"],
        events_per_second=row["ev_per_sec"],
        events_after_tick=row["ev_new"] or 0,
        current_table=row["queue_cur_table"],
        rotation_period=row["queue_rotation_period"],
        rotated_ago=row["switch_age"],
        waits_for=tuple(blocked[name]) if name in blocked else None,
        is_paused=row["queue_ticker_paused"] or row["queue_external_ticker"],
        bytes=space["bytes"] or 0,
        retries=space["retries"],
        dead_letters=space["dead_letters"],
        new_dead_letters=space["new_dead_letters"],
        last_dead_letter_at=space["last_dead_letter_at"],
        max_retries=space["max_retries"],
    )


def _consumer(
    row: Mapping[str, Any], place: Mapping[str, Any], present: tuple[Session, ...] | None, unticked: int
) -> Consumer:
    is_member = place["role"] == "coop_member"
    name, _, member = row["consumer_name"].rpartition(".") if is_member else (row["consumer_name"], "", None)
    seen = None if is_member or present is None else tuple(each for each in present if each.application == name)
    return Consumer(
        queue=row["queue_name"],
        name=name,
        member=member,
        is_group=place["role"] == "coop_main",
        tick_age=row["lag"],
        pending=row["pending_events"],
        lag=place["waiting"],
        last_seen=row["last_seen"],
        open_batch=row["current_batch"],
        sessions=seen,
        unticked=unticked,
    )

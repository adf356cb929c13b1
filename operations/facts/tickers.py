"""The ticker that leads, and those that stand by."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from operations.facts.queues import sessions_are_visible
from operations.facts.reading import Question
from operations.facts.sessions import sessions
from stega.database import clock
from stega.pgque.leadership import holder


@dataclass(frozen=True, slots=True)
class Leader:
    """`pid` and `address` are those of its session on the events database."""

    pid: int
    address: str | None
    since: datetime
    silent_for: timedelta | None
    """Time since its last statement; None where the role may not see it."""


@dataclass(frozen=True, slots=True)
class Tickers:
    """`leader` is None when nobody leads, and when a pooler hides the sessions (`is_visible` is False)."""

    at: datetime
    is_visible: bool
    leader: Leader | None
    standbys: int


def question() -> Question[Tickers]:
    return Question("events", _ask)


def _ask() -> Tickers:
    if not sessions_are_visible():
        return Tickers(clock.now("events"), False, None, 0)
    first = holder("ticker")
    tickers = {each.pid: each for each in sessions("events") if each.application == "pgque_ticker"}
    if first is None:
        return Tickers(clock.now("events"), True, None, len(tickers))
    own = tickers.pop(first.pid, None)
    leader = Leader(first.pid, first.address, first.since, own.silent_for if own else None)
    return Tickers(clock.now("events"), True, leader, len(tickers))

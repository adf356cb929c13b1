"""The plan of a run under fire: which fault strikes when. Pure, and the same for the same seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

TICKERS = ("pgque_ticker.1", "pgque_ticker.2")
INSTANCES = (
    *TICKERS,
    "notification_worker.1",
    "notification_worker.2",
    "sla_breach_worker.1",
    "sla_breach_worker.2",
    "qcluster.1",
    "qcluster.2",
    "producer.1",
)
DATABASES = ("default", "jobs", "events")

MAIL_WEATHER = ("slow", "refuses for now", "hangs up", "takes and hangs up", "closes", "down")
SLACK_WEATHER = ("slow", "busy", "broken", "hangs up", "takes and hangs up", "down")

TICKER_PEACE_SECONDS = 6.0
"""No ticker is killed so soon after the other, or beside a restart of its database: somebody must be able to lead."""


@dataclass(frozen=True)
class Fault:
    at: float
    what: str  # kill, restart, crash, hold, let go, mail, slack
    whom: str


def plan(seed: int, seconds: float, *, kill_each: float, weather_each: float = 4.0) -> list[Fault]:
    """Faults of all kinds for a run of so many seconds, in the order of their times; the last tenth stays calm."""
    chance = random.Random(seed)
    restarts = _restarts(chance, seconds)
    faults = [*restarts, *_old_transaction(restarts, seconds)]
    faults += _kills(chance, seconds, kill_each, [each.at for each in restarts if each.whom == "events"])
    faults += _weather(chance, seconds, weather_each, "mail", MAIL_WEATHER)
    faults += _weather(chance, seconds, weather_each, "slack", SLACK_WEATHER)
    return sorted(faults, key=lambda fault: fault.at)


def _restarts(chance: random.Random, seconds: float) -> list[Fault]:
    """Each database once in order, and in a long run once more by a crash."""
    ways = ["restart", "crash"] if seconds >= 120 else [chance.choice(["restart", "crash"])]
    slots = [(how, alias) for how in ways for alias in chance.sample(DATABASES, len(DATABASES))]
    width = 0.7 * seconds / len(slots)
    return [
        Fault(0.15 * seconds + width * (number + 0.5 * chance.random()), how, alias)
        for number, (how, alias) in enumerate(slots)
    ]


def _old_transaction(restarts: list[Fault], seconds: float) -> list[Fault]:
    """Open on `events` until just before that database goes, which would end it."""
    begin = 0.05 * seconds
    end = min(each.at for each in restarts if each.whom == "events") - 0.02 * seconds
    return [Fault(begin, "hold", "events"), Fault(end, "let go", "events")]


def _kills(chance: random.Random, seconds: float, each: float, events_restarts: list[float]) -> Iterator[Fault]:
    """In rounds, so that every process is hit; a ticker that must not be hit now comes later in its round."""
    at, last_ticker = 0.05 * seconds, -TICKER_PEACE_SECONDS
    round_: list[str] = []
    while (at := at + each * (0.5 + chance.random())) < 0.9 * seconds:
        round_ = round_ or chance.sample(INSTANCES, len(INSTANCES))
        in_peace = any(abs(at - moment) < TICKER_PEACE_SECONDS for moment in [*events_restarts, last_ticker])
        victim = next((name for name in round_ if not (in_peace and name in TICKERS)), None)
        if victim is None:
            continue
        round_.remove(victim)
        last_ticker = at if victim in TICKERS else last_ticker
        yield Fault(at, "kill", victim)


def _weather(chance: random.Random, seconds: float, each: float, channel: str, kinds: tuple[str, ...]) -> list[Fault]:
    """Bad and fine by turns, every kind of bad before one comes again; fine at the end."""
    round_: list[str] = []
    faults = []
    for number in range(int(0.9 * seconds / each)):
        round_ = round_ or chance.sample(kinds, len(kinds))
        faults.append(Fault(number * each, channel, "fine" if number % 2 else round_.pop()))
    return [*faults, Fault(0.9 * seconds, channel, "fine")]

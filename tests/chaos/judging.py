"""What a run under fire amounts to: pure functions from what was seen to what it means."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal


@dataclass(frozen=True)
class Told:
    """A message that a receiver took: when, which one, and whether it told the sender so."""

    at: float
    what: str
    answered: bool = True


@dataclass(frozen=True)
class Turn:
    """When a ticker came to lead, or was killed."""

    at: float
    who: str
    how: Literal["leads", "killed"]


def lost(promised: Iterable[str], told: Iterable[Told]) -> set[str]:
    """What was promised and reached nobody."""
    return set(promised) - {each.what for each in told}


def told_twice(told: Iterable[Told]) -> Counter[str]:
    """How often each message came again although its receiver had answered: what its sender could have known."""
    return _copies(told, after_an_answer=True)


def told_again_unanswered(told: Iterable[Told]) -> Counter[str]:
    """How often each message came again after its receiver took it and hung up: what no sender can know."""
    return _copies(told, after_an_answer=False)


def _copies(told: Iterable[Told], *, after_an_answer: bool) -> Counter[str]:
    copies: Counter[str] = Counter()
    answered: dict[str, bool] = {}
    for each in sorted(told, key=lambda each: each.at):
        if each.what in answered and answered[each.what] == after_an_answer:
            copies[each.what] += 1
        answered[each.what] = answered.get(each.what, False) or each.answered
    return copies


def longest_gap(moments: Iterable[float], begin: float, end: float) -> float:
    """The longest time between `begin` and `end` in which nothing happened."""
    inside = sorted(moment for moment in moments if begin < moment < end)
    edges = [begin, *inside, end]
    return max(after - before for before, after in pairwise(edges))


def failovers(turns: Iterable[Turn]) -> list[float]:
    """How long nobody led, for each leader that was killed; infinite when nobody came to lead again."""
    leader, killed_at = "", None
    gaps: list[float] = []
    for turn in sorted(turns, key=lambda turn: turn.at):
        if turn.how == "leads":
            if killed_at is not None:
                gaps.append(turn.at - killed_at)
            leader, killed_at = turn.who, None
        elif turn.who == leader and killed_at is None:
            killed_at = turn.at
    return gaps if killed_at is None else [*gaps, float("inf")]


def thirds(samples: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The medians of the first and the last third, in time, of samples (moment, value)."""
    begin, end = samples[0][0], samples[-1][0]
    third = (end - begin) / 3
    first = [value for moment, value in samples if moment <= begin + third]
    last = [value for moment, value in samples if moment >= end - third]
    return statistics.median(first), statistics.median(last)


def is_flat(samples: Sequence[tuple[float, float]]) -> bool:
    """Whether memory (in MiB) did not grow by more than a tenth and 5 MiB, which start-up and noise explain."""
    first, last = thirds(samples)
    return last <= first * 1.1 + 5


def difference(wanted: Mapping[str, int] | Iterable[str], got: Mapping[str, int] | Iterable[str]) -> list[str]:
    """What is missing ("- ...") and what is too much ("+ ..."), each as often as it is."""
    one, other = Counter(wanted), Counter(got)
    missing = [f"- {each}" for each in sorted((one - other).elements())]
    return missing + [f"+ {each}" for each in sorted((other - one).elements())]

"""What a run amounts to, as figures with goals."""

from collections.abc import Mapping, Sequence

from tests.bench.__main__ import Figure
from tests.chaos.judging import (
    difference,
    failovers,
    is_flat,
    longest_gap,
    lost,
    thirds,
    told_again_unanswered,
    told_twice,
)
from tests.chaos.run import Outcome

FAILOVER_SECONDS = 2.0
TELLERS = ("notification_worker", "sla_breach_worker")
INFORMATIVE = ("ticker fail-over", "processes that hung", "memory of")
"""Figures whose goals a loaded machine may miss without anybody having lost anything."""


def figures(seen: Outcome) -> list[Figure]:
    return [*_deliveries(seen), *_refusals(seen), *_times(seen), *_processes(seen)]


def missed_goals(measured: Sequence[Figure]) -> list[str]:
    """Those about losses, copies and dead letters."""
    return [figure.name for figure in measured if not (figure.reached or figure.name.startswith(INFORMATIVE))]


def _deliveries(seen: Outcome) -> list[Figure]:
    seconds = seen.end - seen.begin
    facts = seen.promises.facts + seen.others + len(seen.poison)
    missing = lost(seen.promises.told, seen.told) | seen.forgotten
    twice, unanswered = told_twice(seen.told), told_again_unanswered(seen.told)
    kills = sum(_by_command(seen.supervisor.kills).get(teller, 0) for teller in TELLERS)
    ids = {each.what for each in seen.told}
    strangers = ids - seen.promises.told - seen.uncertain
    offered = f"{seen.fire.through_outbox:g}/s through the outbox, {seen.fire.straight:g}/s published straight"
    return [
        Figure("facts sent", f"{facts:,} ({facts / seconds:,.0f}/s)", "", True, f"asked for: {offered}"),
        Figure("messages to tell", f"{len(seen.promises.told):,}", "", True, "by e-mail and Slack"),
        Figure("delivered", f"{len(ids & seen.promises.told):,}", "all", not missing, ""),
        _exact("lost", missing),
        Figure(
            "told twice", f"{twice.total()}", f"<= {kills}", twice.total() <= kills, f"{kills} who tell were killed"
        ),
        _exact("told twice where Message-IDs are compared", strangers, "messages under another Message-ID"),
        Figure("told again", f"{unanswered.total()}", "", True, "the receiver took it and hung up: nobody can know"),
    ]


def _refusals(seen: Outcome) -> list[Figure]:
    return [
        _just("dead letters", seen.poison, seen.dead_letters, "bad events put in on purpose"),
        _just("recipients not told", seen.promises.untold, seen.untold, "refused, unsendable, inactive, hook gone"),
        _just("tasks given up", seen.promises.given_up, seen.given_up, "tasks that fail by their own fault"),
    ]


def _times(seen: Outcome) -> list[Figure]:
    gap = longest_gap((each.at for each in seen.told), seen.begin, seen.end)
    gaps = failovers(seen.supervisor.all_turns())
    left = f"left then: {seen.backlog}"
    words = ", ".join(f"{each:.2f} s" for each in gaps) or "no leader was killed"
    return [
        Figure("longest gap without delivery", f"{gap:.1f} s", "", True, "outages of databases included"),
        Figure("all told after the end of the facts", f"{seen.drained_after:.1f} s", "", True, left),
        Figure("ticker fail-over", words, "< 2 s each", all(each < FAILOVER_SECONDS for each in gaps), ""),
    ]


def _processes(seen: Outcome) -> list[Figure]:
    kills = ", ".join(f"{name} {count}" for name, count in sorted(_by_command(seen.supervisor.kills).items()))
    hung = {name for name, each in seen.supervisor.instances.items() if each.hung}
    rows = [Figure("killed with -9", kills, "", True, ""), _exact("processes that hung at the end", hung)]
    for name, samples in sorted(seen.supervisor.memory.items()):
        first, last = thirds(samples)
        value = f"{first:.0f} -> {last:.0f} MiB"
        rows.append(Figure(f"memory of {name}", value, "flat", is_flat(samples), "median of the first, last third"))
    return rows


def _by_command(counts: Mapping[str, int]) -> dict[str, int]:
    commands: dict[str, int] = {}
    for name, count in counts.items():
        command = name.split(".")[0]
        commands[command] = commands.get(command, 0) + count
    return commands


def _exact(name: str, wrong: set[str], note: str = "") -> Figure:
    shown = ", ".join(sorted(wrong)[:3])
    return Figure(name, f"{len(wrong)}", "0", not wrong, shown or note)


def _just(name: str, wanted: set[str], got: set[str], note: str) -> Figure:
    wrong = difference(wanted, got)
    return Figure(name, f"{len(got)}", f"{len(wanted)}", not wrong, ", ".join(wrong[:3]) or note)

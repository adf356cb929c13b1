"""What could not be read although its database answered otherwise."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from operations.facts import Facts
from operations.facts.reading import Reading
from operations.problems import words
from operations.problems.words import Problem


def faults(facts: Facts) -> Iterator[Problem]:
    down = {alias for alias, reading in facts.databases.items() if reading.is_away}
    sources: dict[str, Reading[object]] = {f"database {alias}": each for alias, each in facts.databases.items()}
    sources |= {
        "queues": facts.queues,
        "tickers": facts.tickers,
        "tasks": facts.tasks,
        "outbox": facts.outbox,
        "ledger": facts.ledger,
        "actions": facts.actions,
    }
    for source, reading in sources.items():
        if reading.trouble and reading.alias not in down:
            is_stuck = reading.alias == "events" and reading.is_away
            missing = words.FACTS_MISSING_OF_EVENTS if is_stuck else words.FACTS_MISSING
            about, why = _(words.SOURCES.get(source, words.SERVER)), _(words.TROUBLES[reading.trouble])
            yield missing.of(source, alias=reading.alias, subject=about, trouble=why)

"""What is the case, read from the databases within FACTS_SECONDS. Nothing here changes anything.

One source is asked by `reading.read(queues.question())`, all of them side by side by `gather()`.
"""

from dataclasses import dataclass

from operations.facts import actions, configuration, databases, ledger, outbox, queues, tasks, tickers
from operations.facts.actions import Actions
from operations.facts.configuration import Configuration
from operations.facts.databases import Database
from operations.facts.ledger import Ledger
from operations.facts.outbox import Outbox
from operations.facts.queues import Queues
from operations.facts.reading import Question, Reading, read_all
from operations.facts.tasks import Tasks
from operations.facts.tickers import Tickers
from stega.checks import ALIASES


@dataclass(frozen=True, slots=True)
class Facts:
    """One reading per source; each holds its value, or the trouble with its database."""

    databases: dict[str, Reading[Database]]
    """By alias."""
    queues: Reading[Queues]
    tickers: Reading[Tickers]
    tasks: Reading[Tasks]
    outbox: Reading[Outbox]
    ledger: Reading[Ledger]
    actions: Reading[Actions]
    configuration: Configuration


def gather(seconds: float | None = None) -> Facts:
    """Everything, within `seconds`, FACTS_SECONDS unless given."""
    questions: dict[str, Question[object]] = {alias: databases.question(alias) for alias in ALIASES}
    sources = {
        module.__name__.rpartition(".")[2]: module for module in (queues, tickers, tasks, outbox, ledger, actions)
    }
    questions |= {name: module.question() for name, module in sources.items()}
    answers = read_all(questions, seconds)
    return Facts(
        databases={alias: answers[alias] for alias in ALIASES},
        queues=answers["queues"],
        tickers=answers["tickers"],
        tasks=answers["tasks"],
        outbox=answers["outbox"],
        ledger=answers["ledger"],
        actions=answers["actions"],
        configuration=configuration.read(),
    )

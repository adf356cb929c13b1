"""What is wrong, told from facts alone: one vocabulary for /metrics, doctor, the console and the alert rules.

words.py has the names and the words; each of the others says which facts of one source are a fault.
"""

from operations.facts import Facts
from operations.problems import actions, configuration, databases, ledger, outbox, queues, silence, tasks, tickers
from operations.problems.words import Problem, Severity


def problems(facts: Facts) -> list[Problem]:
    """Every problem, the critical ones first. What a database did not answer is a problem itself, never silence."""
    found = [*silence.faults(facts), *databases.faults(facts.databases)]
    if facts.queues.value:
        found += queues.faults(facts.queues.value)
    if facts.tickers.value and facts.queues.value:
        found += tickers.faults(facts.tickers.value, facts.queues.value)
    if facts.tasks.value:
        found += tasks.faults(facts.tasks.value)
    if facts.outbox.value:
        found += outbox.faults(facts.outbox.value)
    if facts.ledger.value:
        found += ledger.faults(facts.ledger.value)
    if facts.actions.value:
        found += actions.faults(facts.actions.value)
    found += configuration.faults(facts.configuration, facts.databases.get("events"))
    return sorted(found, key=lambda problem: (problem.severity != Severity.CRITICAL, problem.name, problem.subject))

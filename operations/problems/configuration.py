from collections.abc import Iterator

from operations.facts.configuration import Configuration
from operations.facts.databases import Database
from operations.facts.reading import Reading
from operations.problems import words
from operations.problems.words import Name, Problem, Severity


def faults(configuration: Configuration, events: Reading[Database] | None) -> Iterator[Problem]:
    for finding in configuration.findings:
        yield Problem(Name.SETTINGS_UNSAFE, finding.id, finding.text, finding.remedy, Severity.WARNING)
    if events and events.value and events.value.is_pooled and not configuration.is_said_to_be_pooled:
        yield words.EVENTS_POOLED_UNSAID.of("EVENTS_POOLED")
    if configuration.is_said_to_be_pooled and not configuration.has_direct_address:
        yield words.NO_DIRECT_ADDRESS.of("EVENTS_LISTEN_DATABASE_URL")

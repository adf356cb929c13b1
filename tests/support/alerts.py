"""The alert rules of deploy/prometheus, evaluated on a scrape."""

import re
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

ALERTS = Path(__file__).resolve().parents[2] / "deploy" / "prometheus" / "alerts.yml"
_EXPRESSION = re.compile(r'max by \(name, subject, severity\) \(stega_problem\{name="(\w+)"\}\) == 1')


def rules() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    return loaded


def rules_of_problems() -> dict[str, dict[str, Any]]:
    """Problem name -> its rule; rules about anything else are left out."""
    return {match[1]: rule for rule in rules() if (match := _EXPRESSION.fullmatch(rule["expr"]))}


def problems_in(scrape: str) -> set[tuple[str, str]]:
    """Name and subject of every problem in the scrape."""
    return {
        (sample.labels["name"], sample.labels["subject"])
        for family in text_string_to_metric_families(scrape)
        for sample in family.samples
        if sample.name == "stega_problem" and sample.value == 1
    }


def firing(scrape: str) -> set[tuple[str, str]]:
    """Name and subject of every alert whose expression holds for the scrape."""
    ruled = rules_of_problems()
    return {(name, subject) for name, subject in problems_in(scrape) if name in ruled}

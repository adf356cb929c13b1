"""The alert rules and the dashboard in deploy/ speak the names that Stega really tells."""

import json
import re
from pathlib import Path

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from operations.problems.words import Name
from tests.support.alerts import rules, rules_of_problems

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "stega.json"


def headings(document):
    return set(re.findall(r"^#+ (.+)$", (ROOT / document).read_text(), re.MULTILINE))


def expressions_of_the_dashboard():
    return [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]


def metrics_in(expressions):
    return set(re.findall(r"\bstega_\w+", " ".join(expressions)))


def test_every_problem_has_an_alert_by_its_name():
    assert set(rules_of_problems()) == set(Name)
    assert [rule["alert"] for rule in rules() if "stega_problem" not in rule["expr"]] == ["StegaNotSeen"]


def test_every_alert_has_a_name_of_its_own_and_leads_to_its_runbook():
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for name, rule in rules_of_problems().items():
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{name}"
        assert rule["annotations"]["summary"]


@pytest.mark.parametrize("document", ["docs/operations.md", "docs/pt-br/operations.md"])
def test_every_problem_has_a_heading_that_says_what_to_do(document):
    assert set(Name) - headings(document) == set()


@pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)
def test_every_metric_that_an_alert_or_the_dashboard_uses_is_in_a_real_scrape():
    text = Client().get("/metrics").content.decode()

    told = {family.name for family in text_string_to_metric_families(text)}

    used = metrics_in([*expressions_of_the_dashboard(), *(rule["expr"] for rule in rules())])
    assert used - told == set()


@pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)
def test_the_dashboard_shows_every_metric_that_is_told():
    text = Client().get("/metrics").content.decode()

    told = {family.name for family in text_string_to_metric_families(text)}

    left_out = {"stega_consumer_last_seen_seconds", "stega_ticker_leads_seconds", "stega_queue_new_dead_letters"}
    assert told - metrics_in(expressions_of_the_dashboard()) == left_out


def test_the_panels_of_the_dashboard_have_ids_of_their_own_and_do_not_overlap():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(set(cells)) == len(cells)
    assert len({panel["id"] for panel in panels}) == len(panels)

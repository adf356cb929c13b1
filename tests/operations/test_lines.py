"""Which line out of Stega fails is told by the product that posts by it, and its secret by nobody."""

import json
from contextlib import suppress
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from notifications.channels import slack
from notifications.models import Circuit
from stega.pgque.bootstrap import bootstrap
from tests.factories import make_product

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

HOOK, OTHER_HOOK = (f"https://hooks.slack.com/services/T0/B0/{secret}" for secret in ("hush", "pst"))


def fail(line):
    until = timezone.now() + timedelta(minutes=1)
    Circuit.objects.create(line=line, failures=9, reason="Slack refused", retry_at=until)


def lines_of_metrics(client):
    families = text_string_to_metric_families(client.get("/metrics").content.decode())
    return [
        each.labels["line"] for family in families if family.name == "stega_line_failures" for each in family.samples
    ]


def said(command, *arguments):
    out = StringIO()
    with suppress(SystemExit):
        call_command(command, *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def failing(settings):
    """The line of one product fails, of an installation that is prepared."""
    bootstrap(lambda line: None)
    settings.CIRCUIT_FAILURES = 3
    make_product("Loja", slack_webhook_url=HOOK)
    fail(slack.line(HOOK))


def test_a_line_that_fails_is_named_by_its_product_everywhere(failing, client, as_user, admin):
    told = {
        "metrics": client.get("/metrics").content.decode(),
        "doctor": said("doctor"),
        "status": said("pgque_status"),
        "overview": as_user(admin).get("/admin/operations/").content.decode(),
        "deliveries": as_user(admin).get("/admin/operations/ledger/").content.decode(),
    }

    secret = slack.line(HOOK).removeprefix("slack ")
    assert {place for place, text in told.items() if "slack Loja" not in text} == set()
    assert {place for place, text in told.items() if secret in text or "hush" in text} == set()
    assert 'name="slack_down",severity="warning",subject="slack Loja"' in told["metrics"]


def test_status_tells_lines_as_json_and_none_when_all_work(failing):
    failing_line = json.loads(said("pgque_status", "--json"))["lines"]
    Circuit.objects.all().delete()

    assert [(each["name"], each["failures"]) for each in failing_line] == [("slack Loja", 9)]
    assert json.loads(said("pgque_status", "--json"))["lines"] == []
    assert "line " not in said("pgque_status")


def test_products_that_share_a_webhook_are_one_line(client):
    for name, hook in (("Shop", HOOK), ("Blog", HOOK), ("Wiki", OTHER_HOOK), ("Quiet", "")):
        make_product(name, slack_webhook_url=hook)
    fail(slack.line(HOOK))
    fail(slack.line(OTHER_HOOK))

    assert sorted(lines_of_metrics(client)) == ["slack Blog +1", "slack Wiki"]


def test_a_webhook_that_no_product_has_any_more_is_not_told(client):
    fail(slack.line(HOOK))

    assert lines_of_metrics(client) == []

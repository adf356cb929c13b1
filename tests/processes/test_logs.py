"""One ticket comment through real processes: its key is in every log, and nothing that is nobody's business."""

import json

import pytest
from django_q.models import Task

from notifications.models import Delivery
from tests.factories import PASSWORD, make_product, make_ticket
from tests.support import processes
from tests.support.browser import Browser
from tests.support.processes import run_task
from tests.support.waiting import wait_until

BODY = "the-words-of-the-comment"
SECRETS = {
    "STEGA_SECRET_KEY": "the-secret-key-of-the-test",
    "EMAIL_HOST_PASSWORD": "the-password-of-the-mail",
    "STEGA_METRICS_TOKEN": "the-token-of-the-scrape",
}


@pytest.fixture
def in_json(env):
    env |= {"STEGA_LOG_FORMAT": "json", "EMAIL_HOST_USER": "stega", **SECRETS}
    return env


def lines_of(process):
    """Every line as the JSON object that it must be."""
    return [json.loads(line) for line in process.output.splitlines()]


def test_one_key_goes_from_the_request_to_the_mail(in_json, start, mailbox, customer, agent):
    ticket = make_ticket(author=customer, product=make_product(), assignee=agent)
    cluster = start("qcluster", saying="ready for work")
    ticker = start("pgque_ticker")
    worker = start("notification_worker")
    web, address = processes.web(in_json)
    with web:
        person = Browser(address)
        person.sign_in(agent.username, PASSWORD)
        person.post(f"/tickets/{ticket.pk}/comment/", form_at=f"/tickets/{ticket.pk}/", body=BODY)
        wait_until(lambda: Delivery.objects.filter(event_type="ticket.comment_added", state="sent"), timeout=30)
        worker.wait_for("Handled ticket.comment_added")

        logged = {"web": lines_of(web), "cluster": lines_of(cluster), "worker": lines_of(worker)}
        everything = "".join(process.output for process in (web, cluster, ticker, worker))

    key = str(Delivery.objects.get(event_type="ticket.comment_added").event_key)
    told = {name: [line["message"] for line in lines if line.get("event_key") == key] for name, lines in logged.items()}
    assert told["web"] == ["Promised publish_ticket_comment_added"]
    assert told["cluster"] == ["Published ticket.comment_added", "Task publish_ticket_comment_added is done"]
    assert [message.split()[0] for message in told["worker"]] == ["Told", "Handled"]
    promised = next(line for line in logged["web"] if line.get("event_key") == key)
    assert promised["request_id"]
    assert json.loads(ticker.output.splitlines()[0])["process"] == "pgque_ticker"
    assert [secret for secret in (BODY, *SECRETS.values()) if secret in everything] == []


def test_a_task_that_fails_leaves_neither_its_words_nor_those_of_its_error(start):
    cluster = start("qcluster", saying="ready for work")

    run_task("builtins.int", BODY)
    cluster.wait_for("Failed 'builtins.int'")

    failed = Task.objects.get(func="builtins.int", success=False)
    assert "ValueError at " in failed.result
    assert BODY not in failed.result + cluster.output

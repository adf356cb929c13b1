"""Lag is one thing, whoever tells it: how long the first tick that a consumer has not read has waited for it."""

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connections
from prometheus_client.parser import text_string_to_metric_families

from accounts.roles import Role
from operations import sampling
from operations.facts import queues
from operations.facts.reading import read
from operations.problems import problems
from operations.problems.words import Name
from stega.pgque import client as event_log
from tests.factories import make_user
from tests.operations.facts_of import facts
from tests.support.event_log import tick

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

FINISHED, WAITS = 7200, 3600
"""Seconds ago: the last tick that the consumer finished, and the first one that it has not read."""


@pytest.fixture
def late(queue):
    """A consumer that is behind."""
    event_log.subscribe(queue, "audit")
    event_log.insert_event(queue, "ticket.welcome", {}, "")
    tick(queue)
    with connections["events"].cursor() as cursor:
        cursor.execute(
            """
            update pgque.tick set tick_time = now() - make_interval(
                secs => case when tick_id = sub_last_tick then %s else %s end)
            from pgque.subscription join pgque.queue on queue_id = sub_queue
            where tick_queue = queue_id and queue_name = %s and tick_id >= sub_last_tick
            """,
            [FINISHED, WAITS, queue],
        )
    return "audit"


def told_by_status(name):
    out = StringIO()
    call_command("pgque_status", "--json", stdout=out)
    return next(each["lag"] for each in json.loads(out.getvalue())["consumers"] if each["name"] == name)


def told_by_metrics(client, name):
    families = text_string_to_metric_families(client.get("/metrics").content.decode())
    samples = next(family.samples for family in families if family.name == "stega_consumer_lag_seconds")
    return next(sample.value for sample in samples if sample.labels["consumer"] == name)


def test_status_metrics_samples_and_console_tell_the_same_lag(late, client, as_user):
    console = as_user(make_user("operator", Role.ADMIN, is_staff=True, is_superuser=True))

    seconds = [told_by_status(late), told_by_metrics(client, late), sampling.events()[f"lag:{late}"]]
    page = console.get("/admin/operations/consumers/").content.decode()

    assert seconds == pytest.approx([WAITS] * 3, abs=60)
    assert 'data-label="Lag">1 h<' in page
    assert "2 h" not in page


def test_lag_is_what_makes_a_worker_a_problem(late, settings):
    settings.WORKER_BEHIND_SECONDS = WAITS - 60
    too_late = worker_dead(late)
    settings.WORKER_BEHIND_SECONDS = WAITS + 60
    in_time = worker_dead(late)

    assert ["lag: 36" in problem.text for problem in too_late] == [True]
    assert in_time == []


def worker_dead(consumer):
    found = problems(facts(queues=read(queues.question()).value))
    return [problem for problem in found if (problem.name, problem.subject) == (Name.WORKER_DEAD, consumer)]


def test_where_nothing_waits_lag_is_nothing(queue, client):
    event_log.subscribe(queue, "audit")

    assert (told_by_status("audit"), told_by_metrics(client, "audit")) == (0.0, 0.0)

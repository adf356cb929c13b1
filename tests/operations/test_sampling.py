"""operations/sampling.py: one sample of each minute, of what can be asked."""

import uuid
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from notifications.models import Delivery, State
from notifications.notice import Channel
from operations import sampling, tasks
from operations.models import Sample
from stega.pgque import client
from tests.support.event_log import tick

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

NOW = timezone.now().replace(second=30, microsecond=0)
MINUTE = NOW.replace(second=0)


def values():
    return dict(Sample.objects.values_list("series", "value"))


def notice(state, age):
    delivery = Delivery.objects.create(event_key=uuid.uuid4(), channel=Channel.EMAIL, recipient="user:1", state=state)
    Delivery.objects.filter(pk=delivery.pk).update(created_at=MINUTE - age)


def test_events_and_lag_are_sampled(queue):
    client.subscribe(queue, "audit")
    client.insert_event(queue, "ticket.welcome", {}, "")
    tick(queue)

    sampling.take(NOW)

    assert values()[f"events:{queue}"] > 0
    assert values()["lag:audit"] > 0


def test_a_consumer_that_has_read_everything_does_not_lag(queue):
    client.subscribe(queue, "audit")

    sampling.take(NOW)

    assert values()["lag:audit"] == 0


def test_the_notices_of_the_minute_before_are_sampled_by_their_fate(queue):
    for state in (State.SENT, State.SENT, State.FAILED, State.GIVEN_UP, State.PENDING, State.SENDING, State.SKIPPED):
        notice(state, timedelta(seconds=30))
    notice(State.SENT, timedelta(seconds=90))
    notice(State.SENT, timedelta(seconds=-1))

    sampling.take(NOW)

    assert {name: value for name, value in values().items() if name.startswith("deliveries")} == {
        "deliveries:told": 2,
        "deliveries:failed": 2,
        "deliveries:waiting": 2,
    }


def test_two_clusters_sample_a_minute_once(queue):
    sampling.take(NOW)

    assert sampling.take(NOW) == {"sampled": 0}


def test_the_notices_are_sampled_while_the_event_log_is_away(monkeypatch):
    connections["events"].close()
    monkeypatch.setitem(connections["events"].settings_dict, "HOST", "/nowhere")

    sampling.take(NOW)

    assert values() == {"deliveries:told": 0, "deliveries:failed": 0, "deliveries:waiting": 0}


def test_old_samples_are_pruned():
    for days in (1, 8):
        Sample.objects.take(NOW - timedelta(days=days), {"a": 1.0})

    assert tasks.prune_samples() == {"pruned": 1}
    assert Sample.objects.count() == 1

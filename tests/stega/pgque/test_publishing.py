"""stega/pgque/publishing.py and catalogue.py: what may be published, and under which key."""

import uuid

import pytest

from stega.pgque import catalogue, client
from stega.pgque.publishing import event_key, publish
from tests.support.event_log import tick

BREACH = {"ticket_id": 7, "title": "Down", "priority": "critical", "product_name": "Demo", "elapsed_hours": 4}


def test_the_same_fact_always_has_the_same_key():
    assert event_key("ticket.welcome", 1) == event_key("ticket.welcome", 1)


def test_other_facts_have_other_keys():
    keys = {event_key("a", 1, 23), event_key("a", 12, 3), event_key("a", 123), event_key("b", 1, 23)}

    assert len(keys) == 4


@pytest.mark.parametrize(
    ("event_type", "payload"),
    [
        ("ticket.merged", {}),
        ("ticket.sla_breached", {**BREACH, "elapsed_hours": 4.5}),
        ("ticket.sla_breached", {**BREACH, "ticket_id": True}),
        ("ticket.sla_breached", {key: value for key, value in BREACH.items() if key != "title"}),
        ("report.weekly_ready", {"product_id": 1, "product_name": "Demo", "period": "7d", "stats": {}}),
    ],
)
def test_what_the_catalogue_does_not_promise_is_refused(event_type, payload):
    with pytest.raises(catalogue.BadPayload):
        publish(event_type, payload, uuid.uuid4())


def test_every_type_is_a_noun_and_a_past_participle_and_says_who_publishes_it():
    for name, event_type in catalogue.EVENT_TYPES.items():
        noun, participle = name.split(".")
        assert noun.isalpha()
        assert participle
        assert event_type.publisher.rsplit(".", 1)[0] in ("accounts.tasks", "tickets.tasks")


@pytest.mark.django_db(databases=["events"], transaction=True)
def test_a_published_event_arrives_with_payload_and_key(queue):
    client.subscribe(queue, "reader")
    key = uuid.uuid4()

    publish("ticket.sla_breached", {**BREACH, "title": "Não 💎"}, key)
    tick(queue)

    (event,) = client.batch_events(client.next_batch(queue, "reader"), 10)
    assert (event.type, event.extra1, "Não 💎" in event.data) == ("ticket.sla_breached", str(key), True)

import uuid

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from accounts.models import Role, User
from notifications.delivery import deliver
from notifications.models import Delivery, DeliveryQuerySet, State
from stega.pgque import catalogue, client
from tests.notifications.notices import mail_to
from tests.notifications.test_messages import PAYLOADS
from tests.support.event_log import tick

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


@pytest.fixture
def subscribed(queue):
    client.subscribe(queue, catalogue.NOTIFICATION_WORKER)
    client.subscribe(queue, catalogue.SLA_BREACH_DISPATCHER)
    return queue


def send(queue, *event_types, **changes):
    for event_type in event_types:
        client.insert_event(queue, event_type, {**PAYLOADS[event_type], **changes}, str(uuid.uuid4()))
    tick(queue)


def test_the_notification_worker_tells_people(subscribed, people, mailbox):
    send(subscribed, "ticket.welcome", user_id=people["author"].pk)

    call_command("notification_worker", "--once")

    assert mailbox.addresses() == ["author@example.com"]


def test_a_breach_is_told_once_by_the_two_workers_together(subscribed, ticket, mailbox):
    send(subscribed, "ticket.sla_breached")

    call_command("notification_worker", "--once")
    call_command("sla_breach_worker", "--once")

    assert mailbox.addresses() == ["assignee@example.com"]


def test_the_breach_worker_leaves_the_rest_to_others(subscribed, people, mailbox):
    send(subscribed, "ticket.welcome", user_id=people["author"].pk)

    call_command("sla_breach_worker", "--once")

    assert mailbox.received == []


def test_fifty_five_events_of_one_batch_are_all_told(subscribed, mailbox):
    for number in range(55):
        user = User.objects.create(
            username=f"user{number}", email=f"user{number}@example.com", role=Role.CUSTOMER.value
        )
        client.insert_event(
            subscribed, "ticket.welcome", {**PAYLOADS["ticket.welcome"], "user_id": user.pk}, str(uuid.uuid4())
        )
    tick(subscribed)

    call_command("notification_worker", "--once")

    assert sorted(mailbox.addresses()) == sorted(f"user{number}@example.com" for number in range(55))


def test_the_same_fact_published_twice_is_told_once(subscribed, people, mailbox):
    key = str(uuid.uuid4())
    payload = {**PAYLOADS["ticket.welcome"], "user_id": people["author"].pk}
    client.insert_event(subscribed, "ticket.welcome", payload, key)
    client.insert_event(subscribed, "ticket.welcome", payload, key)
    tick(subscribed)

    call_command("notification_worker", "--once")

    assert len(mailbox.received) == 1
    assert Delivery.objects.count() == 1


@pytest.fixture
def sent_and_not_written_down(mailbox, monkeypatch):
    """What this process told while it lost the database."""

    def lost(ledger, claim):
        raise OperationalError("server closed the connection")

    with monkeypatch.context() as outage:
        outage.setattr(DeliveryQuerySet, "settle_sent", lost)
        with pytest.raises(OperationalError):
            deliver([mail_to(1)])


@pytest.mark.parametrize("command", ["notification_worker", "sla_breach_worker"])
def test_a_worker_with_nothing_to_do_writes_down_what_it_told_before_it_lost_the_database(
    subscribed, sent_and_not_written_down, command
):
    call_command(command, "--once")

    assert Delivery.objects.get().state == State.SENT


@pytest.mark.parametrize("command", ["notification_worker", "sla_breach_worker"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon", ""])
def test_an_interval_that_makes_no_sense_is_refused(command, value):
    with pytest.raises(CommandError):
        call_command(command, f"--interval={value}")


def test_a_dead_interval_that_makes_no_sense_is_refused():
    with pytest.raises(CommandError):
        call_command("sla_breach_worker", "--dead-interval=0")

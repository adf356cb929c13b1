"""An outage of hours, on a clock that the test moves: nothing is lost, nothing counts, all is told after."""

import uuid
from collections import Counter

import pytest

from accounts.models import User
from notifications.handlers import handlers_of
from notifications.models import Delivery, State
from stega.pgque import catalogue, client
from stega.pgque.consumer import Consumer
from tests.notifications.moments import pass_by, pass_to_next_retry
from tests.notifications.test_messages import PAYLOADS
from tests.support.event_log import dead_letters, replay, retries
from tests.support.event_log import tick as tick_now
from tests.support.receivers import Answer

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

HOUR = 3600.0
PEOPLE = 4


@pytest.fixture
def workers(queue, settings):
    client.set_queue_config(queue, "max_retries", str(settings.PGQUE_MAX_RETRIES))
    settings.CIRCUIT_LONGEST_PAUSE_SECONDS = 1800.0
    names = [catalogue.NOTIFICATION_WORKER, catalogue.SLA_BREACH_DISPATCHER]
    for name in names:
        client.subscribe(queue, name)
    return [Consumer(name, handlers_of(name)) for name in names]


def work(workers):
    for worker in workers:
        while worker.step():
            pass


def work_for(workers, queue, seconds):
    """Let the workers work as long by the moved clock; how long it was in the end."""
    gone = 0.0
    work(workers)
    while gone < seconds and retries(queue):
        gone += pass_to_next_retry(queue)
        work(workers)
        if not retries(queue):  # the last ones may have been published anew
            tick_now(queue)
            work(workers)
    return gone


def welcome(queue, number=PEOPLE):
    for each in range(number):
        user = User.objects.create(username=f"customer-{each}", email=f"customer-{each}@example.com")
        payload = PAYLOADS["ticket.welcome"] | {"user_id": user.pk}
        client.insert_event(queue, "ticket.welcome", payload, str(uuid.uuid4()))
    tick_now(queue)


@pytest.mark.parametrize("reply", ["421 4.3.0 out of order", "451 4.7.1 greylisted"])
@pytest.mark.parametrize("hours", [6, 24])
def test_a_mail_server_that_refuses_for_hours_dead_letters_nothing_and_gets_everything_after(
    queue, workers, mailbox, hours, reply
):
    mailbox.rcpt = lambda address: reply
    welcome(queue)
    work_for(workers, queue, hours * HOUR)
    assert dead_letters(queue) == {}
    assert mailbox.received == []

    mailbox.rcpt = lambda address: None
    took = work_for(workers, queue, 24 * HOUR)

    assert set(Counter(mailbox.addresses()).values()) == {1}
    assert Delivery.objects.filter(state=State.SENT).count() == PEOPLE
    assert took <= HOUR
    assert retries(queue) == []


def test_what_only_waits_for_its_turn_to_probe_becomes_no_dead_letter(queue, workers, mailbox, settings):
    settings.PGQUE_MAX_RETRIES = 3
    client.set_queue_config(queue, "max_retries", "3")
    mailbox.rcpt = lambda address: "421 4.3.0 out of order"
    welcome(queue, 8)

    work_for(workers, queue, 6 * HOUR)

    assert dead_letters(queue) == {}
    assert Delivery.objects.filter(state=State.PENDING).count() == 8


def test_what_is_not_tried_costs_no_attempt(queue, workers, mailbox):
    mailbox.rcpt = lambda address: "421 4.3.0 out of order"
    welcome(queue)

    work_for(workers, queue, 6 * HOUR)

    probes = 6 * HOUR / 1800
    assert sum(Delivery.objects.values_list("attempts", flat=True)) < probes + 20


def test_a_server_that_puts_everybody_off_is_asked_ever_more_seldom(queue, workers, mailbox):
    mailbox.data = lambda mail: "452 4.3.1 disk full"
    welcome(queue, 1)

    tries = []
    for _ in range(3):
        before = Delivery.objects.values_list("attempts", flat=True).first() or 0
        work_for(workers, queue, 8 * HOUR)
        tries.append(Delivery.objects.get().attempts - before)

    assert dead_letters(queue) == {}
    assert tries[-1] < 40


def test_slack_goes_on_while_the_mail_server_refuses(queue, workers, mailbox, webhook, ticket):
    mailbox.rcpt = lambda address: "421 4.3.0 out of order"
    ticket(slack_webhook_url=webhook.url)
    welcome(queue)
    work_for(workers, queue, HOUR)

    client.insert_event(queue, "ticket.sla_breached", PAYLOADS["ticket.sla_breached"], str(uuid.uuid4()))
    tick_now(queue)
    work(workers)

    assert len(webhook.received) == 1
    assert mailbox.received == []


def test_a_recipient_refused_for_the_time_being_for_ever_ends_as_a_dead_letter(queue, workers, mailbox, settings):
    settings.DELIVERY_MAX_AGE_SECONDS = 5 * HOUR
    mailbox.rcpt = lambda address: "450 4.1.2 no such domain"
    welcome(queue, 1)

    work_for(workers, queue, 24 * HOUR)

    (reason,) = dead_letters(queue).values()
    assert "450 4.1.2 no such domain" in reason or "Waits" in reason
    assert Delivery.objects.get().state == State.GIVEN_UP
    assert retries(queue) == []


def test_what_was_given_up_is_told_when_an_operator_replays_it(queue, workers, mailbox, settings):
    settings.DELIVERY_MAX_AGE_SECONDS = HOUR
    mailbox.rcpt = lambda address: "450 4.1.2 no such domain"
    welcome(queue, 1)
    work_for(workers, queue, 24 * HOUR)
    mailbox.rcpt = lambda address: None
    pass_by(HOUR)

    Delivery.objects.reopen(Delivery.objects.values_list("event_key", flat=True))
    replay(queue)
    work_for(workers, queue, 24 * HOUR)

    assert Delivery.objects.get().state == State.SENT
    assert len(mailbox.received) == 1


def test_a_bug_of_our_own_ends_as_a_dead_letter_and_the_ledger_says_so(queue, workers, mailbox, monkeypatch):
    def broken(*args):
        raise LookupError("no such template")

    monkeypatch.setattr("notifications.channels.email.composed", broken)
    welcome(queue, 1)

    work_for(workers, queue, 24 * 30 * HOUR)

    assert len(dead_letters(queue)) == 1
    assert Delivery.objects.get().state == State.GIVEN_UP


def test_a_storm_of_breaches_is_paced_in_slack_and_not_in_mail(queue, workers, mailbox, webhook, ticket, settings):
    settings.SLACK_PACE_SECONDS = 60.0
    ticket(slack_webhook_url=webhook.url)
    for _ in range(10):
        client.insert_event(queue, "ticket.sla_breached", PAYLOADS["ticket.sla_breached"], str(uuid.uuid4()))
    tick_now(queue)

    work(workers)
    assert (len(mailbox.received), len(webhook.received)) == (10, 1)
    took = work_for(workers, queue, HOUR)

    assert (len(mailbox.received), len(webhook.received)) == (10, 10)
    assert 500 < took < 700


def test_a_busy_slack_is_left_in_peace_by_all_posts_to_the_webhook(queue, workers, mailbox, webhook, ticket, settings):
    webhook.answers.append(Answer(429, "rate_limited", {"Retry-After": "7"}))
    ticket(slack_webhook_url=webhook.url)
    for _ in range(20):
        client.insert_event(queue, "ticket.sla_breached", PAYLOADS["ticket.sla_breached"], str(uuid.uuid4()))
    tick_now(queue)

    work(workers)
    assert len(webhook.received) == 1
    work_for(workers, queue, HOUR)

    assert len(webhook.received) == 21
    assert dead_letters(queue) == {}

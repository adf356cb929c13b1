"""What may have arrived, for nobody said: it is sent again, a few times, ever later, unless word comes after all."""

import uuid
from contextlib import suppress
from dataclasses import replace

import pytest

from notifications.channels import email
from notifications.delivery import UNCERTAIN_TRIES, deliver, uncertain_pause
from notifications.models import Delivery, State
from stega.pgque.message import Rejected, RetryLater
from tests.notifications.moments import pass_by
from tests.notifications.notices import mail_to, post_to, row
from tests.support.receivers import Answer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db


@pytest.fixture
def patient_lines(settings):
    """No circuit opens."""
    settings.CIRCUIT_FAILURES = 1000


def try_in_vain(notice, tries=1):
    """Deliver what nobody answers to, each time when it is due; the pauses that were asked for."""
    pauses = []
    for _ in range(tries):
        with pytest.raises(RetryLater) as later:
            deliver([notice])
        pauses.append(later.value.seconds)
        pass_by(later.value.seconds + 1)
    return pauses


def test_the_pauses_double_up_to_an_hour(settings):
    settings.UNCERTAIN_PAUSE_SECONDS = 60.0

    assert [uncertain_pause(tries) for tries in range(1, 9)] == [60, 120, 240, 480, 960, 1920, 3600, 3600]


@pytest.mark.usefixtures("patient_lines")
def test_a_mail_that_nobody_answers_to_comes_again_ever_later_and_a_few_times_in_all(mailbox):
    mailbox.drop = True

    pauses = try_in_vain(mail_to(1), UNCERTAIN_TRIES - 1)
    with pytest.raises(Rejected, match="uncertain"):
        deliver([mail_to(1)])

    assert pauses == [uncertain_pause(tries) for tries in range(1, UNCERTAIN_TRIES)]
    assert len(mailbox.received) == UNCERTAIN_TRIES
    assert row().state == State.GIVEN_UP


@pytest.fixture
def given_up(mailbox, patient_lines):
    """A mail that nobody ever answered to."""
    mailbox.drop = True
    try_in_vain(mail_to(1), UNCERTAIN_TRIES - 1)
    with pytest.raises(Rejected):
        deliver([mail_to(1)])
    return mail_to(1)


def test_who_was_given_up_is_left_alone_while_the_event_comes_again_and_is_a_dead_letter_in_the_end(given_up, mailbox):
    mailbox.drop = False

    with pytest.raises(Rejected, match=r"user:1 given up: .*uncertain"):
        deliver([given_up, mail_to(2)])

    assert mailbox.addresses()[UNCERTAIN_TRIES:] == ["user2@example.com"]


def test_who_was_given_up_waits_for_the_others_before_the_event_is_a_dead_letter(given_up, mailbox):
    mailbox.drop = False
    mailbox.rcpt = lambda address: "451 later"

    with pytest.raises(RetryLater):
        deliver([given_up, mail_to(2)])


def test_who_was_given_up_is_told_once_reopened(given_up, mailbox):
    mailbox.drop = False
    Delivery.objects.reopen([given_up.event_key])

    deliver([given_up])

    assert (len(mailbox.received), row().state) == (UNCERTAIN_TRIES + 1, State.SENT)


def test_what_was_reopened_after_days_has_its_time_anew(given_up, mailbox, settings):
    pass_by(settings.DELIVERY_MAX_AGE_SECONDS)
    mailbox.drop = False
    mailbox.rcpt = lambda address: "451 later"
    Delivery.objects.reopen([given_up.event_key])

    try_in_vain(given_up)

    assert row().state == State.PENDING


@pytest.mark.usefixtures("patient_lines")
def test_a_refusal_counts_no_uncertain_try(mailbox):
    mailbox.rcpt = lambda address: "451 later"

    try_in_vain(mail_to(1), UNCERTAIN_TRIES + 1)

    assert (row().state, row().uncertain_tries) == (State.PENDING, 0)


@pytest.mark.django_db(transaction=True)
def test_a_post_that_slack_takes_after_it_was_given_up_is_not_made_again(webhook, settings):
    settings.DELIVERY_LEASE_SECONDS = 0.4
    webhook.gate.clear()
    try_in_vain(post_to(webhook))
    webhook.gate.set()
    wait_until(lambda: Delivery.objects.get().state == State.SENT, timeout=10)

    deliver([post_to(webhook)])

    assert len(webhook.received) == 1


def test_a_fault_about_one_recipient_does_not_end_the_waiting_of_another(mailbox, monkeypatch, caplog):
    mailbox.rcpt = lambda address: "451 later"
    composed = email.composed
    monkeypatch.setattr(email, "composed", lambda target, *words: composed(target, *words) if "2" in target else fail())

    with pytest.raises(RetryLater) as later:
        deliver([mail_to(1), mail_to(2)])

    assert not later.value.counted
    assert "LookupError" in caplog.text


def fail():
    raise LookupError("no such template")


def test_many_posts_that_waited_for_days_are_made_in_turn(webhook, settings):
    settings.SLACK_PACE_SECONDS = 5.0
    notices = [replace(post_to(webhook), event_key=uuid.uuid4()) for _ in range(3)]
    webhook.answer = Answer(503)
    for notice in notices:
        with pytest.raises(RetryLater):
            deliver([notice])
    pass_by(settings.DELIVERY_MAX_AGE_SECONDS)
    webhook.answer = Answer()

    for notice in notices * 3:
        with suppress(RetryLater):
            deliver([notice])
        pass_by(6)

    assert set(Delivery.objects.values_list("state", flat=True)) == {State.SENT}

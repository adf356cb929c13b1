"""notifications/models/ledger.py: one row per notice, whose state is that of the last who had it in hand."""

import pytest
from django.conf import settings

from notifications.circuits import Admission
from notifications.delivery import deliver
from notifications.models import Delivery, State
from stega.pgque.message import Rejected, RetryLater
from tests.notifications.notices import age, claim, mail_to, row

pytestmark = pytest.mark.django_db


def test_a_notice_in_another_processs_hands_is_left_to_it(mailbox, settings):
    claim()

    with pytest.raises(RetryLater) as later:
        deliver([mail_to(1)])

    assert mailbox.received == []
    assert 0 < (later.value.seconds or 0) <= settings.DELIVERY_LEASE_SECONDS


def test_a_notice_whose_sender_died_is_told_after_the_lease(mailbox, settings):
    claim()
    age(claimed_at=settings.DELIVERY_LEASE_SECONDS)

    deliver([mail_to(1)])

    assert len(mailbox.received) == 1
    assert (row().state, row().attempts) == (State.SENT, 2)


def die(times):
    """So many senders in a row, each with the notice in hand."""
    for _ in range(times):
        claim()
        age(claimed_at=settings.DELIVERY_LEASE_SECONDS)


def test_a_notice_that_three_senders_died_with_is_given_up_and_its_neighbours_are_told(mailbox):
    die(3)

    with pytest.raises(Rejected, match="user:1 given up: Whoever was sending it died"):
        deliver([mail_to(1), mail_to(2)])

    assert mailbox.addresses() == ["user2@example.com"]
    assert row().state == State.GIVEN_UP


def test_a_sender_that_lives_to_tell_of_a_failure_ends_the_row_of_deaths(mailbox):
    die(2)
    mailbox.rcpt = lambda address: "451 4.3.0 not now"
    with pytest.raises(RetryLater):
        deliver([mail_to(1)])
    mailbox.rcpt = lambda address: None
    age(retry_at=3600)
    die(1)

    deliver([mail_to(1)])

    assert row().state == State.SENT


def test_a_notice_that_waits_between_two_deaths_is_still_the_one_they_died_with(mailbox):
    die(2)
    held = claim()
    Delivery.objects.postpone(held, "the line is closed", Admission(seconds=60.0))
    age(retry_at=60)
    die(1)

    with pytest.raises(Rejected):
        deliver([mail_to(1)])

    assert mailbox.received == []


def test_who_was_given_up_after_deaths_is_told_once_an_operator_replays_the_event(mailbox):
    die(3)
    with pytest.raises(Rejected):
        deliver([mail_to(1)])

    Delivery.objects.reopen([row().event_key])
    deliver([mail_to(1)])

    assert row().state == State.SENT


def test_a_sender_that_lost_its_claim_writes_no_failure_over_the_new_one(settings):
    lost = claim()
    age(claimed_at=settings.DELIVERY_LEASE_SECONDS)
    claim()

    Delivery.objects.settle_failed(lost, "late", "")

    assert row().state == State.SENDING


def test_what_went_out_is_sent_though_the_claim_was_lost(settings):
    lost = claim()
    age(claimed_at=settings.DELIVERY_LEASE_SECONDS)
    held = claim()

    Delivery.objects.settle_sent(lost)
    Delivery.objects.settle_failed(held, "refused", "")

    assert row().state == State.SENT


def crash_and_give_the_id_to(notice):
    """The server's crash took the claim back, and the ids with it: another process's claim got the same one."""
    taken_back = Delivery.objects.get().pk
    Delivery.objects.all().delete()
    Delivery.objects.claim(notice, "<2@example.com>", "smtp")
    Delivery.objects.update(id=taken_back)


@pytest.mark.parametrize(
    ("settle", "words", "state"),
    [
        ("settle_sent", (), State.SENT),
        ("settle_failed", ("refused", ""), State.FAILED),
        ("settle_given_up", ("too old", ""), State.GIVEN_UP),
    ],
)
def test_the_end_of_a_claim_that_a_crash_took_back_is_written_and_no_other_row_is_touched(settle, words, state):
    lost = claim()
    crash_and_give_the_id_to(mail_to(2))

    getattr(Delivery.objects, settle)(lost, *words)

    assert {each.recipient: each.state for each in Delivery.objects.all()} == {"user:1": state, "user:2": State.SENDING}
    assert (row().attempts, row().message_id, row().address) == (1, "<1@example.com>", "user1@example.com")


@pytest.mark.parametrize(
    ("settle", "words"), [("settle_pending", ("busy", "", 5.0)), ("postpone", ("paced", Admission(5.0)))]
)
def test_giving_back_a_claim_that_a_crash_took_back_touches_no_other_row(settle, words):
    lost = claim()
    crash_and_give_the_id_to(mail_to(2))

    getattr(Delivery.objects, settle)(lost, *words)

    assert Delivery.objects.get().state == State.SENDING


def test_who_claims_anew_what_a_crash_took_back_is_not_overruled_by_the_former_claims_failure():
    lost = claim()
    crash_and_give_the_id_to(mail_to(1))

    Delivery.objects.settle_failed(lost, "refused", "")
    Delivery.objects.settle_pending(lost, "busy", "", 5.0)

    assert row().state == State.SENDING


def claim_taken_back(settings, earlier):
    """A second claim of user 1's notice whose row a crash of the server took back to its `earlier` state."""
    first = claim()
    if earlier == State.PENDING:
        Delivery.objects.settle_pending(first, "busy", "", None)
    age(claimed_at=settings.DELIVERY_LEASE_SECONDS)
    before = Delivery.objects.values().get()
    lost = claim()
    Delivery.objects.update(**before)
    return lost


@pytest.mark.parametrize("earlier", [State.PENDING, State.SENDING])
@pytest.mark.parametrize(
    ("settle", "words", "state"),
    [
        ("settle_sent", (), State.SENT),
        ("settle_failed", ("refused", ""), State.FAILED),
        ("settle_given_up", ("older yet", ""), State.GIVEN_UP),
    ],
)
def test_the_end_of_a_later_claim_that_a_crash_took_back_is_written(settings, earlier, settle, words, state):
    lost = claim_taken_back(settings, earlier)

    getattr(Delivery.objects, settle)(lost, *words)

    assert (row().state, row().reason) == (state, "".join(words))
    assert (row().attempts, row().claimed_at) == (2, lost.claimed_at)


def test_who_has_claimed_since_what_a_crash_took_back_and_waits_is_not_overruled_by_the_former_claims_failure(settings):
    lost = claim_taken_back(settings, State.PENDING)
    Delivery.objects.postpone(claim(), "paced", Admission(5.0))

    Delivery.objects.settle_failed(lost, "refused", "")

    assert (row().state, row().attempts) == (State.PENDING, 1)


def test_what_the_sender_before_told_is_not_overruled_by_the_failure_of_a_claim_that_a_crash_took_back(settings):
    lost = claim_taken_back(settings, State.SENDING)
    Delivery.objects.update(state=State.SENT)

    Delivery.objects.settle_failed(lost, "refused", "")

    assert row().state == State.SENT


def test_what_went_out_before_a_crash_took_the_claim_back_is_not_sent_again(mailbox):
    lost = claim()
    Delivery.objects.all().delete()

    Delivery.objects.settle_sent(lost)
    deliver([mail_to(1)])

    assert (mailbox.received, row().state) == ([], State.SENT)

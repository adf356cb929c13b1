"""notifications/delivery.py: each notice is told once, and a failure holds up nobody else."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, connections, transaction

from notifications.channels import email, slack, smtp
from notifications.delivery import deliver
from notifications.models import Circuit, Delivery, DeliveryQuerySet, State
from stega.pgque.message import RetryLater
from tests.notifications.moments import pass_by
from tests.notifications.notices import age, mail_to, post_to, row
from tests.support.receivers import Answer
from tests.support.together import at_once
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db


def test_a_notice_is_told_and_recorded(mailbox):
    deliver([mail_to(1)])

    assert mailbox.addresses() == ["user1@example.com"]
    assert row().state == State.SENT
    assert row().sent_at is not None
    assert (row().attempts, row().reason, row().address) == (1, "", "user1@example.com")
    assert row().message_id == mailbox.received[0].message["Message-ID"]


def test_the_same_notice_is_told_once(mailbox):
    deliver([mail_to(1)])
    deliver([mail_to(1)])

    assert len(mailbox.received) == 1


def test_another_event_for_the_same_recipient_is_told(mailbox):
    deliver([mail_to(1)])
    deliver([mail_to(1, event_key=uuid.uuid4())])

    assert len(mailbox.received) == 2


def test_mail_and_slack_about_one_event_are_two_notices(mailbox, webhook):
    deliver([mail_to(1), post_to(webhook)])

    assert (len(mailbox.received), webhook.texts()) == (1, ["It burns.\n"])


def test_the_ledger_never_holds_the_webhook(webhook):
    webhook.answer = Answer(404, "no_service")

    deliver([post_to(webhook)])

    assert [value for value in Delivery.objects.values().get().values() if "verysecret" in str(value)] == []


def test_a_temporary_failure_is_tried_again(mailbox):
    mailbox.rcpt = lambda address: "451 4.7.1 try later"
    with pytest.raises(RetryLater, match=r"451 4\.7\.1 try later"):
        deliver([mail_to(1)])
    assert (row().state, row().attempts, row().detail) == (State.PENDING, 1, "451 4.7.1 try later")
    pass_by(3)

    mailbox.rcpt = lambda address: None
    deliver([mail_to(1)])

    assert (row().state, row().attempts, row().detail) == (State.SENT, 2, "")


def test_a_permanent_failure_is_recorded_and_not_tried_again(mailbox):
    mailbox.rcpt = lambda address: "550 5.1.1 no such user"
    deliver([mail_to(1)])

    mailbox.rcpt = lambda address: None
    deliver([mail_to(1)])

    assert mailbox.received == []
    assert (row().state, row().attempts, row().detail) == (State.FAILED, 1, "550 5.1.1 no such user")


def test_a_refused_recipient_does_not_stop_the_others(mailbox):
    mailbox.rcpt = lambda address: "550 5.1.1 no such user" if address == "user2@example.com" else None

    deliver([mail_to(number) for number in range(1, 6)])

    assert mailbox.addresses() == [f"user{number}@example.com" for number in (1, 3, 4, 5)]


def test_all_are_tried_before_one_comes_again(mailbox):
    mailbox.rcpt = lambda address: "451 later" if address == "user1@example.com" else None

    with pytest.raises(RetryLater):
        deliver([mail_to(1), mail_to(2), mail_to(3)])

    assert mailbox.addresses() == ["user2@example.com", "user3@example.com"]


def test_only_those_not_yet_told_are_told_when_it_comes_again(mailbox):
    mailbox.rcpt = lambda address: "451 later" if address == "user1@example.com" else None
    with pytest.raises(RetryLater):
        deliver([mail_to(1), mail_to(2)])
    pass_by(3)

    mailbox.rcpt = lambda address: None
    deliver([mail_to(1), mail_to(2)])

    assert mailbox.addresses() == ["user2@example.com", "user1@example.com"]


def test_who_is_put_off_is_asked_again_when_its_own_pause_is_over_and_not_when_another_is_due(mailbox, monkeypatch):
    mailbox.rcpt = lambda address: "450 4.2.2 mailbox full"
    monkeypatch.setattr("random.random", lambda: 1.0)
    with pytest.raises(RetryLater):
        deliver([mail_to(1)])
    Delivery.objects.update(attempts=20)
    pass_by(3)
    with pytest.raises(RetryLater) as own:
        deliver([mail_to(1)])

    with pytest.raises(RetryLater) as other:
        deliver([mail_to(1), mail_to(2)])

    assert (own.value.seconds, other.value.seconds) == (3600, 2)
    assert row().attempts == 21


def test_a_post_that_a_limit_of_our_own_keeps_back_counts_neither_as_a_try_nor_against_its_line(webhook, monkeypatch):
    monkeypatch.setattr(slack, "MOST_LEFT_BEHIND", 0)
    for _ in range(5):
        with pytest.raises(RetryLater) as later:
            deliver([post_to(webhook)])
        pass_by(60)

    assert (later.value.seconds, later.value.counted) == (slack.HEARD_SECONDS, False)
    assert (row("product:3").state, row("product:3").attempts) == (State.PENDING, 0)
    assert Circuit.objects.get().failures == 0


@pytest.mark.parametrize("order", [1, -1])
def test_a_channel_that_is_down_does_not_stop_the_other(mailbox, webhook, order):
    webhook.answer = Answer(503)

    with pytest.raises(RetryLater):
        deliver([post_to(webhook), mail_to(1)][::order])

    assert len(mailbox.received) == 1


def test_slack_is_not_asked_before_the_wait_it_demanded(webhook):
    webhook.answers.append(Answer(429, "rate_limited", {"Retry-After": "7"}))
    with pytest.raises(RetryLater) as first:
        deliver([post_to(webhook)])

    with pytest.raises(RetryLater) as second:
        deliver([post_to(webhook)])

    assert first.value.seconds == 7
    assert 0 < (second.value.seconds or 0) <= 7
    assert len(webhook.received) == 1


def test_slack_is_asked_again_when_the_wait_is_over(webhook):
    webhook.answers.append(Answer(429, "rate_limited", {"Retry-After": "7"}))
    with pytest.raises(RetryLater):
        deliver([post_to(webhook)])
    pass_by(7)

    deliver([post_to(webhook)])

    assert (row("product:3").state, len(webhook.received)) == (State.SENT, 2)


def test_who_is_not_told_is_recorded_with_the_reason(mailbox):
    deliver([mail_to(1, skip="The user is inactive"), mail_to(2)])

    assert mailbox.addresses() == ["user2@example.com"]
    assert (row().state, row().attempts, row().reason) == (State.SKIPPED, 0, "The user is inactive")


def test_who_left_between_two_tries_is_not_told(mailbox):
    mailbox.rcpt = lambda address: "451 later"
    with pytest.raises(RetryLater):
        deliver([mail_to(1)])

    deliver([mail_to(1, skip="The user is inactive")])

    assert (row().state, row().attempts) == (State.SKIPPED, 1)


def test_a_reason_not_to_tell_changes_nothing_for_who_was_told(mailbox):
    deliver([mail_to(1)])
    deliver([mail_to(1, skip="The user is inactive")])

    assert row().state == State.SENT


def test_a_fault_of_our_own_leaves_its_notice_open_and_the_others_told(mailbox, monkeypatch):
    composed = email.composed

    def broken(target, *args):
        if target == "user1@example.com":
            raise LookupError("no such template")
        return composed(target, *args)

    monkeypatch.setattr(email, "composed", broken)

    with pytest.raises(LookupError):
        deliver([mail_to(1), mail_to(2)])

    assert mailbox.addresses() == ["user2@example.com"]
    assert (row().state, row().detail) == (State.PENDING, "LookupError")


def test_a_lost_database_is_raised_at_once(mailbox, monkeypatch):
    claim = DeliveryQuerySet.claim

    def lost_once(*_):
        monkeypatch.setattr(DeliveryQuerySet, "claim", claim)
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(DeliveryQuerySet, "claim", lost_once)

    with pytest.raises(OperationalError):
        deliver([mail_to(1), mail_to(2)])

    assert mailbox.received == []


def test_what_went_out_while_the_database_went_away_is_not_sent_again(mailbox, monkeypatch, settings):
    settle_sent = DeliveryQuerySet.settle_sent

    def lost_once(ledger, claim):
        monkeypatch.setattr(DeliveryQuerySet, "settle_sent", settle_sent)
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(DeliveryQuerySet, "settle_sent", lost_once)
    with pytest.raises(OperationalError):
        deliver([mail_to(1)])
    age(claimed_at=settings.DELIVERY_LEASE_SECONDS)

    deliver([mail_to(1), mail_to(2)])

    assert mailbox.addresses() == ["user1@example.com", "user2@example.com"]
    assert {each.state for each in Delivery.objects.all()} == {State.SENT}


def test_a_notice_that_waited_long_for_its_line_comes_again_soon_after_its_first_failure(mailbox):
    mailbox.rcpt = lambda address: "451 4.7.1 try later"

    pauses = []
    for _ in range(2):
        with pytest.raises(RetryLater) as failure:
            deliver([mail_to(1)])
        pauses.append(failure.value.seconds)
        pass_by(5)

    assert 1 <= pauses[0] <= 2
    assert 1 <= pauses[1] <= 4


def test_hostile_words_of_a_server_are_one_cut_line(mailbox):
    mailbox.rcpt = lambda address: "550 " + "\x0b<b>no</b> " * 40

    deliver([mail_to(1)])

    assert len(row().detail.splitlines()) == 1


def test_nobody_is_told_any_more_once_a_stop_was_asked(mailbox):
    with pytest.raises(RetryLater):
        deliver([mail_to(1), mail_to(2), mail_to(3)], stopping=lambda: bool(mailbox.received))

    assert mailbox.addresses() == ["user1@example.com"]
    assert Delivery.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_nobody_may_deliver_inside_a_transaction(mailbox):
    with transaction.atomic(), pytest.raises(RuntimeError):
        deliver([mail_to(1)])

    assert mailbox.received == []


@pytest.mark.django_db(transaction=True)
def test_two_processes_at_once_tell_once(mailbox):
    def tell(notice):
        try:
            deliver([notice])
        except RetryLater:
            pass
        finally:
            smtp.hang_up()

    at_once(tell, [mail_to(1)] * 8)

    assert len(mailbox.received) == 1
    assert (row().state, row().attempts) == (State.SENT, 1)


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_the_mail_server_is_slow(mailbox):
    mailbox.gate.clear()
    sender: list[int] = []

    def tell():
        with connection.cursor() as cursor:
            cursor.execute("select pg_backend_pid()")
            sender.append(cursor.fetchone()[0])
        deliver([mail_to(1)])
        smtp.hang_up()
        connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        telling = pool.submit(tell)
        wait_until(lambda: mailbox.received, timeout=5)
        with connection.cursor() as cursor:
            cursor.execute("select state from pg_stat_activity where pid = %s", sender)
            state = cursor.fetchone()
        mailbox.gate.set()
        telling.result()

    assert state == ("idle",)
    assert row().state == State.SENT

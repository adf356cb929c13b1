"""Those who are not told: written down with the first who is, in one statement."""

from datetime import timedelta

import pytest
from django.utils import timezone

from notifications.delivery import deliver
from notifications.models import Delivery, State
from stega.pgque.message import RetryLater
from tests.notifications.notices import mail_to

pytestmark = pytest.mark.django_db


def states():
    return dict(Delivery.objects.order_by("recipient").values_list("recipient", "state"))


def test_all_who_are_not_told_are_written_down_with_one_who_is(mailbox):
    deliver([mail_to(1, skip="inactive"), mail_to(3), mail_to(2, skip="muted")])

    assert mailbox.addresses() == ["user3@example.com"]
    assert states() == {"user:1": State.SKIPPED, "user:2": State.SKIPPED, "user:3": State.SENT}


def test_all_who_are_not_told_are_written_down_when_nobody_is(mailbox):
    deliver([mail_to(1, skip="inactive"), mail_to(2, skip="muted")])

    assert states() == {"user:1": State.SKIPPED, "user:2": State.SKIPPED}


def test_who_is_named_twice_is_written_down_once(mailbox):
    deliver([mail_to(1, skip="inactive"), mail_to(1, skip="no address"), mail_to(2)])

    assert states() == {"user:1": State.SKIPPED, "user:2": State.SENT}


def test_those_beside_one_who_was_told_before_are_written_down(mailbox):
    deliver([mail_to(1)])

    deliver([mail_to(1), mail_to(2, skip="muted")])

    assert len(mailbox.received) == 1
    assert states() == {"user:1": State.SENT, "user:2": State.SKIPPED}


def test_who_is_skipped_while_a_try_is_due_later_waits_no_more(mailbox):
    mailbox.rcpt = lambda address: "451 later"
    with pytest.raises(RetryLater):
        deliver([mail_to(1)])
    Delivery.objects.update(retry_at=timezone.now() + timedelta(hours=1))

    deliver([mail_to(1, skip="inactive")])

    assert states() == {"user:1": State.SKIPPED}

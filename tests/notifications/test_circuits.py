"""Lines that fail are left in peace, probed by one, and used again; busy ones are paced."""

import pytest
from django.db import connection

from notifications.channels import TemporaryFailure
from notifications.circuits import Admission, pause
from notifications.delivery import deliver
from notifications.models import Circuit
from notifications.models.circuit import STATE, state_of
from stega.pgque.message import RetryLater
from tests.notifications.moments import pass_by
from tests.notifications.notices import mail_to, post_to
from tests.support.together import at_once

LINE = "smtp mail.example.com:25"


@pytest.fixture(autouse=True)
def limits(settings):
    settings.CIRCUIT_FAILURES = 3
    settings.CIRCUIT_PAUSE_SECONDS = 5.0
    settings.CIRCUIT_LONGEST_PAUSE_SECONDS = 120.0


@pytest.mark.parametrize(
    ("failures", "asked", "seconds"),
    [
        (1, None, 0),
        (2, None, 0),
        (3, None, 5),
        (4, None, 10),
        (7, None, 80),
        (8, None, 120),
        (10_000, None, 120),
        (1, 7.0, 7),
        (3, 7.0, 7),
        (3, 0.0, 5),
        (8, 3600.0, 3600),
    ],
)
def test_pauses_grow_with_the_failures_and_are_never_shorter_than_asked(failures, asked, seconds):
    assert pause(failures, asked) == seconds


def admit(line=LINE, **options):
    """As a claim does, which brings the state of its line along."""
    with connection.cursor() as cursor:
        cursor.execute(f"select {STATE}", {"line": line})
        state = state_of(cursor.fetchone()[0])
    return Circuit.objects.admit(line, state, **options)


def fail(times=1, admission=None, seconds=None):
    for _ in range(times):
        Circuit.objects.record_failure(LINE, admission or Admission(), TemporaryFailure("refused", seconds=seconds))


@pytest.mark.django_db
class TestCircuit:
    def test_a_line_nobody_used_yet_may_be_used(self):
        assert admit() == Admission()

    def test_a_few_failures_open_nothing(self):
        fail(2)

        assert admit() == Admission(failures=2)

    def test_failures_in_a_row_open_it(self):
        fail(3)

        assert 4 < admit().seconds <= 5

    def test_a_success_between_keeps_it_closed(self):
        fail(2)
        Circuit.objects.record_success(LINE, admit())
        fail(2)

        assert not admit().seconds

    def test_another_line_goes_on(self):
        fail(3)

        assert admit("slack 1") == Admission()

    def test_one_caller_probes_after_the_pause_and_the_others_wait_for_it(self):
        fail(3)
        pass_by(5)

        assert admit() == Admission(is_probe=True)
        assert admit().seconds > 1

    def test_a_probe_whose_process_died_is_followed_by_another(self, settings):
        fail(3)
        pass_by(5)
        admit()
        pass_by(settings.DELIVERY_LEASE_SECONDS)

        assert admit().is_probe

    def test_a_failed_probe_opens_it_for_longer(self):
        fail(3)
        pass_by(5)
        fail(admission=admit())

        assert 9 < admit().seconds <= 10

    def test_a_good_probe_closes_it(self):
        fail(3)
        pass_by(5)
        Circuit.objects.record_success(LINE, admit())

        assert admit() == Admission()

    def test_a_wait_the_other_side_asks_for_opens_it_at_once(self):
        fail(seconds=7)

        assert 6 < admit().seconds <= 7

    def test_a_failure_told_late_does_not_shorten_the_wait_asked_for(self):
        fail(seconds=60)
        fail(seconds=1)

        assert admit().seconds > 50


@pytest.mark.django_db
class TestPace:
    def test_the_first_goes_at_once_and_the_next_get_slots_in_a_row(self):
        waits = [admit(pace=1.0).seconds for _ in range(4)]

        assert waits[0] == 0
        assert [round(wait) for wait in waits[1:]] == [1, 2, 3]

    def test_who_waited_for_a_slot_uses_it(self):
        for _ in range(3):
            admit(pace=1.0)

        assert not admit(pace=1.0, has_slot=True).seconds

    def test_a_line_that_was_idle_owes_no_slots(self):
        admit(pace=1.0)
        pass_by(60)

        assert not admit(pace=1.0).seconds
        assert admit(pace=1.0).seconds

    def test_slots_begin_again_after_the_line_was_left_in_peace(self):
        for _ in range(500):
            admit(pace=1.0)
        fail(seconds=7)
        pass_by(7)
        Circuit.objects.record_success(LINE, admit(pace=1.0))

        assert admit(pace=1.0).seconds < 2


@pytest.mark.django_db(transaction=True)
def test_one_of_many_processes_probes():
    fail(3)
    pass_by(5)

    assert sum(at_once(lambda _: admit().is_probe, range(8))) == 1


@pytest.mark.django_db
class TestWhatDeliveringSaysOfALine:
    @pytest.fixture
    def failing(self, mailbox):
        """A mail server whose circuit is open, and which may be probed."""
        mailbox.rcpt = lambda address: "421 closing"
        for number in range(1, 4):
            with pytest.raises(RetryLater):
                deliver([mail_to(number)])
        pass_by(10)
        return mailbox

    def test_a_bad_address_does_not_close_the_circuit_of_the_mail_server(self, failing):
        deliver([mail_to(4, target="no address")])

        assert Circuit.objects.get().failures == 3

    @pytest.mark.parametrize("reply", ["550 5.1.1 no such user", None])
    def test_an_answer_closes_the_circuit(self, failing, reply):
        failing.rcpt = lambda address: reply
        deliver([mail_to(4)])

        assert (Circuit.objects.get().failures, Circuit.objects.get().retry_at) == (0, None)

    @pytest.mark.parametrize("step", ["rcpt", "data"])
    def test_a_recipient_or_a_mail_that_is_put_off_closes_the_circuit_too(self, failing, step):
        failing.rcpt = lambda address: None
        setattr(failing, step, lambda _: "450 4.2.0 come back later")
        with pytest.raises(RetryLater):
            deliver([mail_to(4)])

        assert (Circuit.objects.get().failures, Circuit.objects.get().retry_at) == (0, None)

    def test_recipients_that_are_put_off_hold_up_nobody_else(self, mailbox):
        mailbox.rcpt = lambda address: None if address == "user9@example.com" else "450 4.1.2 no such domain"
        for number in range(1, 5):
            with pytest.raises(RetryLater):
                deliver([mail_to(number)])

        deliver([mail_to(9)])

        assert mailbox.addresses() == ["user9@example.com"]

    def test_a_circuit_never_names_the_webhook(self, webhook):
        deliver([post_to(webhook)])

        assert "verysecret" not in str(Circuit.objects.values())

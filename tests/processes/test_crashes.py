"""Messages that kill their workers, and workers that are dead only to the others."""

import os
import signal
import uuid
from collections import Counter

import pytest
from django.db import connections

from stega.models import MessageInHand
from stega.pgque.publishing import publish
from tests.factories import make_user
from tests.support.event_log import dead_letters, retries
from tests.support.waiting import wait_until

PLAIN, GROUP = "notification_worker", "sla_breach_dispatcher"


def handled(worker):
    return [int(line.split()[1]) for line in worker.output.splitlines() if line.startswith("handled")]


@pytest.mark.parametrize(("verb", "dead_interval"), [("exit", []), ("sys.exit", []), ("exit", [1])])
def test_a_message_that_kills_its_worker_three_times_is_a_dead_letter_and_its_neighbours_go_on(
    send, work, settings, verb, dead_interval
):
    send("nothing", verb, "nothing")
    name = GROUP if dead_interval else PLAIN
    for _ in range(3):
        assert work(name, *dead_interval).wait() == 9

    last = work(name, *dead_interval)

    wait_until(lambda: dead_letters(settings.PGQUE_QUEUE), timeout=20)
    assert list(dead_letters(settings.PGQUE_QUEUE).values()) == ["3 workers died of this message"]
    assert handled(last) == [1, 3]
    wait_until(lambda: not MessageInHand.objects.exists(), timeout=5)


def test_a_message_in_hand_at_three_kills_is_a_dead_letter(send, work, settings):
    send("nothing", "hang", "nothing")
    for _ in range(3):
        work(PLAIN, saying="begins with 2").kill()

    last = work(PLAIN, saying="handled 3")

    wait_until(lambda: len(dead_letters(settings.PGQUE_QUEUE)) == 1, timeout=20)
    assert handled(last) == [1, 3]


def test_a_mail_whose_sending_kills_each_worker_is_a_dead_letter_after_three_and_the_others_are_told(
    start, mailbox, settings
):
    people = [make_user(f"customer-{number}") for number in range(3)]
    deadly = people[1].email
    quick = {"DELIVERY_LEASE_SECONDS": 2, "EMAIL_TIMEOUT": 1, "SLACK_TIMEOUT_SECONDS": 1}
    workers = []

    def kill(mail):
        if mail.to == deadly:
            workers[-1].kill()

    def run():
        if not workers or not workers[-1].is_running():
            workers.append(start("notification_worker", **quick))
        return dead_letters(settings.PGQUE_QUEUE)

    mailbox.data = kill
    start("pgque_ticker", PGQUE_RETRY_SECONDS=0.5)
    for person in people:
        publish("ticket.welcome", {"user_id": person.pk, "email": person.email, "display_name": "x"}, uuid.uuid4())

    (reason,) = wait_until(run, timeout=60).values()

    assert "died" in reason
    assert Counter(mailbox.addresses()) == {people[0].email: 1, deadly: 3, people[2].email: 1}
    assert len(workers) == 4


def test_a_stopped_member_is_taken_over_and_its_late_ack_finishes_nothing(send, work, settings, tmp_path):
    gate = tmp_path / "gate"
    send(f"gate {gate}")
    stopped = work(GROUP, 1, saying="begins with 1")
    os.kill(stopped.pid, signal.SIGSTOP)

    live = work(GROUP, 1, saying="begins with 1")
    gate.touch()
    live.wait_for("handled 1")
    os.kill(stopped.pid, signal.SIGCONT)

    stopped.wait_for("lost batch")
    assert (retries(settings.PGQUE_QUEUE), dead_letters(settings.PGQUE_QUEUE)) == ([], {})
    assert "lost batch" not in live.output


def test_a_member_that_hangs_in_one_message_loses_it_to_another(send, work, tmp_path):
    gate = tmp_path / "gate"
    send(f"gate {gate}")
    hanging = work(GROUP, 1, saying="begins with 1", HANDLER_PATIENCE_SECONDS=1)

    other = work(GROUP, 1, saying="begins with 1")
    gate.touch()

    other.wait_for("handled 1")
    hanging.wait_for("lost batch")


def test_a_member_that_is_slow_with_one_message_is_not_taken_over(send, work, settings, tmp_path):
    gate = tmp_path / "gate"
    send(f"gate {gate}")
    slow = work(GROUP, 1, saying="begins with 1")
    with connections["events"].cursor() as cursor:
        cursor.execute("select clock_timestamp()")
        (begin,) = cursor.fetchone()

    def three_dead_intervals_have_passed():
        with connections["events"].cursor() as cursor:
            cursor.execute("select clock_timestamp() > %s + interval '3 seconds'", [begin])
            return cursor.fetchone()[0]

    other = work(GROUP, 1)
    wait_until(three_dead_intervals_have_passed, timeout=10)
    gate.touch()

    slow.wait_for("handled 1")
    assert handled(other) == []
    assert slow.terminate() == 0
    assert "lost batch" not in slow.output

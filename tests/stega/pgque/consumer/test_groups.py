"""stega/pgque/consumer.py: the members of a group share its batches, and who leaves or falls silent keeps none."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connections

from stega.pgque import catalogue, client
from stega.pgque.consumer import Consumer, Progress, member_name
from stega.pgque.message import Rejected, RetryLater
from tests.stega.pgque.consumer.recording import Recorder, each_of, send
from tests.support.event_log import dead_letters, make_retries_due, retries, tick
from tests.support.together import at_once
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

GROUP = catalogue.SLA_BREACH_DISPATCHER


def a_member(handler, **options):
    return Consumer(GROUP, {"ticket.welcome": handler}, group=True, **options)


def test_a_member_that_cannot_catch_up_at_its_end_leaves_its_group_all_the_same(queue, recorder):
    client.subscribe(queue, GROUP)
    answers = [None, OperationalError("gone")]
    member = Consumer(GROUP, {}, group=True, catch_up=each_of(answers))

    member.run(until_idle=True)

    joined = {row["consumer_name"] for row in client.consumer_info() if row["queue_name"] == queue}
    assert f"{GROUP}.{member.member}" not in joined
    assert answers == []


@pytest.fixture
def stopping_member(queue):
    """A member that is asked to stop while it handles the first message."""
    client.subscribe(queue, GROUP)
    member = Consumer(GROUP, {}, group=True)
    member.handlers = {"ticket.welcome": lambda message: member.stop()}
    return member


def test_a_stopping_member_gives_the_rest_of_its_batch_back_at_once(queue, stopping_member, recorder):
    send(queue, 1, 2, 3)

    stopping_member.run()
    while client.maint_retry_events():
        pass
    tick(queue)
    a_member(recorder).run(until_idle=True)

    assert recorder.users == [2, 3]


def test_a_stopping_member_with_too_much_left_leaves_it_to_the_retry_queue(
    queue, stopping_member, recorder, monkeypatch
):
    monkeypatch.setattr("stega.pgque.consumer.GIVE_BACK_SECONDS", -1.0)
    send(queue, 1, 2, 3)

    stopping_member.run()
    make_retries_due(queue)
    a_member(recorder).run(until_idle=True)

    assert recorder.users == [1, 2, 3]


def test_members_of_a_group_share_the_work_and_repeat_none(queue, recorder):
    client.subscribe(queue, GROUP)
    other = Recorder()
    send(queue, 1, 2)
    send(queue, 3)
    members = [a_member(each) for each in (recorder, other)]

    for member in members:
        member.setup()
    for member in members:
        member.step()
    for member in members:
        member.teardown()

    assert (recorder.users, other.users) == ([1, 2], [3])


def test_two_hosts_with_the_same_name_and_pid_are_two_members(queue, recorder, monkeypatch):
    monkeypatch.setattr("stega.pgque.consumer.getpid", lambda: 1)
    monkeypatch.setattr("socket.gethostname", lambda: "worker")

    test_members_of_a_group_share_the_work_and_repeat_none(queue, recorder)


def test_eight_members_that_start_at_the_same_moment_on_an_empty_group_all_join(queue, recorder):
    members = [a_member(recorder, queue=queue) for _ in range(8)]

    at_once(lambda member: member.setup(), members)

    joined = {row["consumer_name"] for row in client.consumer_info() if row["queue_name"] == queue}
    for member in members:
        member.teardown()
    assert joined >= {f"{GROUP}.{member.member}" for member in members}


def test_a_group_begins_where_its_consumer_was_subscribed_and_keeps_the_place_between_members(queue, recorder):
    client.subscribe(queue, GROUP)
    for user in (1, 2):
        send(queue, user)

        a_member(recorder).run(until_idle=True)

    assert recorder.users == [1, 2]


@pytest.mark.parametrize("late", [[], [RetryLater("busy")], [Rejected("no")]])
def test_a_silent_members_batch_is_taken_over_and_its_late_end_finishes_nothing(queue, recorder, late):
    client.subscribe(queue, GROUP)
    send(queue, 1)
    silent, live = (a_member(recorder, dead_interval=60.0) for _ in range(2))
    silent.setup()
    batch = silent._open_batch()
    silent._progress = Progress(batch)
    recorder.raising = {1: late}
    silent._handle_batch(silent._progress)
    with connections["events"].cursor() as cursor:
        cursor.execute(
            "update pgque.subscription set sub_active = now() - interval '61 seconds' where sub_batch = %s", [batch]
        )

    live.run(until_idle=True)
    silent._finish(silent._progress)

    assert recorder.users == [1, 1]
    assert (retries(queue), dead_letters(queue)) == ([], {})


def test_a_member_touches_its_place_while_one_message_takes_long(queue):
    client.subscribe(queue, GROUP)
    send(queue, 1)
    seen = []

    def handle(message):
        wait_until(lambda: client.consumer_info()[-1]["last_seen"] > timedelta(seconds=0.2), timeout=5)
        seen.append(wait_until(lambda: client.consumer_info()[-1]["last_seen"] < timedelta(seconds=0.1), timeout=5))

    a_member(handle, dead_interval=1.2).run(until_idle=True)

    assert seen == [True]


def test_no_two_starts_share_a_member_name_even_with_one_host_and_pid(monkeypatch):
    monkeypatch.setattr("stega.pgque.consumer.getpid", lambda: 1)
    monkeypatch.setattr("socket.gethostname", lambda: "worker.example.com")

    names = {member_name() for _ in range(100)}

    assert len(names) == 100
    assert all(name.startswith("worker-example-com-1-") for name in names)

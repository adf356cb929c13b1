"""stega/pgque/consumer.py: whole batches, each message once where nothing crashes, failures told apart."""

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import IntegrityError, OperationalError, ProgrammingError, connections

from stega.models import MessageInHand
from stega.pgque import catalogue, client
from stega.pgque.consumer import Consumer, Progress, member_name
from stega.pgque.message import Message, Rejected, RetryLater, retry_delay
from stega.processes.process import TryAgain
from tests.support.event_log import dead_letters, make_retries_due, retries, tick
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

WELCOME = {"user_id": 1, "email": "customer@example.com", "display_name": "Customer"}


class Recorder:
    """A handler that remembers what it saw, and raises what a test tells it to for a user id."""

    def __init__(self):
        self.messages: list[Message] = []
        self.raising: dict[int, list[Exception]] = {}

    def __call__(self, message):
        self.messages.append(message)
        planned = self.raising.get(message.payload["user_id"])
        if planned:
            raise planned.pop(0)

    @property
    def users(self):
        return [message.payload["user_id"] for message in self.messages]


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def consumer(queue, recorder):
    client.subscribe(queue, catalogue.NOTIFICATION_WORKER)
    return Consumer(catalogue.NOTIFICATION_WORKER, {"ticket.welcome": recorder})


def send(queue, *user_ids, event_type="ticket.welcome"):
    for user_id in user_ids:
        client.insert_event(queue, event_type, WELCOME | {"user_id": user_id}, str(uuid.uuid4()))
    tick(queue)


@pytest.mark.parametrize("page", [1, 20, 54, 55, 56])
def test_every_event_of_a_batch_is_handled_whatever_the_page(queue, recorder, page):
    client.subscribe(queue, "notification_worker")
    send(queue, *range(55))

    Consumer("notification_worker", {"ticket.welcome": recorder}, page=page).run(until_idle=True)

    assert recorder.users == list(range(55))


def test_an_acked_batch_does_not_come_again(queue, consumer, recorder):
    send(queue, 1)

    consumer.run(until_idle=True)
    consumer.run(until_idle=True)

    assert recorder.users == [1]


def test_a_message_carries_its_key_its_attempt_and_its_payload(queue, consumer, recorder):
    key = uuid.uuid4()
    client.insert_event(queue, "ticket.welcome", WELCOME | {"display_name": 'Zoë "💎"'}, str(key))
    tick(queue)

    consumer.run(until_idle=True)

    (message,) = recorder.messages
    assert (message.key, message.attempt, message.payload["display_name"]) == (key, 1, 'Zoë "💎"')


def test_a_failure_comes_again_alone_with_its_attempt_counted(queue, consumer, recorder):
    recorder.raising = {2: [RetryLater("busy")]}
    send(queue, 1, 2, 3)

    consumer.run(until_idle=True)
    make_retries_due(queue)
    consumer.run(until_idle=True)

    assert recorder.users == [1, 2, 3, 2]
    assert recorder.messages[-1].attempt == 2


def count_deliveries(queue, consumer, recorder, times):
    for _ in range(times):
        consumer.run(until_idle=True)
        make_retries_due(queue)
    return len(recorder.messages)


def test_a_message_that_waits_for_an_outage_never_becomes_a_dead_letter(queue, consumer, recorder, settings):
    settings.PGQUE_MAX_RETRIES = 4
    client.set_queue_config(queue, "max_retries", "4")
    recorder.raising = {1: [RetryLater("mail server away", counted=False) for _ in range(20)]}
    send(queue, 1)

    count_deliveries(queue, consumer, recorder, 30)

    assert len(recorder.messages) == 21
    assert len({(message.key, str(message.payload)) for message in recorder.messages}) == 1
    assert (dead_letters(queue), retries(queue)) == ({}, [])


def test_a_message_that_waited_long_still_has_tries_for_faults(queue, consumer, recorder, settings):
    settings.PGQUE_MAX_RETRIES = 4
    client.set_queue_config(queue, "max_retries", "4")
    waits = [RetryLater("mail server away", counted=False) for _ in range(20)]
    recorder.raising = {1: [*waits, ValueError("passing"), ValueError("passing")]}
    send(queue, 1)

    count_deliveries(queue, consumer, recorder, 30)

    assert (dead_letters(queue), retries(queue)) == ({}, [])


def test_a_message_that_fails_by_a_fault_of_ours_ends_as_a_dead_letter(queue, consumer, recorder, settings):
    client.set_queue_config(queue, "max_retries", "4")
    recorder.raising = {1: [ValueError("bug") for _ in range(20)]}
    send(queue, 1)

    count_deliveries(queue, consumer, recorder, 10)

    assert len(recorder.messages) == 5
    assert [reason.partition(" at ")[0] for reason in dead_letters(queue).values()] == ["ValueError"]


def test_a_bug_in_a_handler_does_not_stop_its_neighbours(queue, consumer, recorder):
    recorder.raising = {5: [ValueError("bad \x00 \ud83d 💎")]}
    send(queue, *range(1, 11))

    consumer.run(until_idle=True)

    assert recorder.users == list(range(1, 11))
    assert len(retries(queue)) == 1


def test_a_rejected_message_is_a_dead_letter_at_once_with_its_reason(queue, consumer, recorder):
    recorder.raising = {2: [Rejected("no such \x00 mailbox")]}
    send(queue, 1, 2, 3)

    consumer.run(until_idle=True)

    assert list(dead_letters(queue).values()) == ["no such  mailbox"]
    assert retries(queue) == []
    assert recorder.users == [1, 2, 3]


def test_a_type_nobody_knows_is_a_dead_letter_that_names_it(queue, consumer, recorder):
    send(queue, 1)
    send(queue, 2, event_type="ticket.merged")
    send(queue, 3)

    consumer.run(until_idle=True)

    assert recorder.users == [1, 3]
    (reason,) = dead_letters(queue).values()
    assert "ticket.merged" in reason


def test_a_type_of_another_consumer_is_acked_in_silence(queue, consumer, recorder):
    send(queue, 1, event_type="ticket.sla_breached")

    consumer.run(until_idle=True)

    assert (recorder.users, dead_letters(queue), retries(queue)) == ([], {}, [])


def test_a_type_of_this_consumer_without_a_handler_waits_for_the_version_that_has_it(queue, consumer, recorder):
    send(queue, 1, event_type="report.weekly_ready")

    consumer.run(until_idle=True)

    assert len(retries(queue)) == 1
    assert dead_letters(queue) == {}


@pytest.mark.parametrize(
    "data",
    [
        "not json",
        "[1]",
        "null",
        '{"user_id": 1}',
        '{"user_id": NaN, "email": "a", "display_name": "b"}',
        '{"user_id": 1, "email": "a", "display_name": "b", "more": 1e400}',
        '{"user_id": ' + "9" * 5_000 + ', "email": "a", "display_name": "b"}',
        "[" * 200_000,
    ],
)
def test_a_payload_that_is_none_is_a_dead_letter(queue, consumer, recorder, data):
    client.send_batch(queue, "ticket.welcome", [data, json.dumps(WELCOME)])
    tick(queue)

    consumer.run(until_idle=True)

    assert recorder.users == [1]
    assert [reason.startswith("bad payload") for reason in dead_letters(queue).values()] == [True]


def test_what_a_fault_quotes_of_a_payload_is_neither_in_the_log_nor_in_a_reason(queue, consumer, recorder, caplog):
    faults = [KeyError("their words"), ValueError("their words"), IntegrityError("DETAIL: their words")]
    recorder.raising = {number: [fault] for number, fault in enumerate(faults, 1)}
    send(queue, 1, 2, 3)

    consumer.run(until_idle=True)

    assert len(retries(queue)) == 3
    assert "their words" not in caplog.text
    assert [name for name in ("KeyError", "ValueError", "IntegrityError") if name not in caplog.text] == []


def test_an_outage_in_a_handler_leaves_the_batch_open_and_burns_no_retry(queue, consumer, recorder):
    recorder.raising = {2: [OperationalError("the app database is away")]}
    send(queue, 1, 2, 3)

    with pytest.raises(OperationalError):
        consumer.run(until_idle=True)
    consumer.run(until_idle=True)

    assert recorder.users == [1, 2, 2, 3]
    assert (retries(queue), dead_letters(queue)) == ([], {})


def test_a_batch_whose_ack_fails_comes_again_and_its_done_messages_are_not_handled_again(
    queue, consumer, recorder, monkeypatch
):
    recorder.raising = {2: [RetryLater("busy")]}
    send(queue, 1, 2, 3)
    real_ack, failures = client.ack, [OperationalError("cut")]
    monkeypatch.setattr(client, "ack", lambda batch: real_ack(batch) if not failures else _raise(failures.pop()))

    with pytest.raises(TryAgain):
        consumer.run(until_idle=True)
    assert retries(queue) == []
    consumer.run(until_idle=True)

    assert recorder.users == [1, 2, 3]
    assert len(retries(queue)) == 1


def _raise(error):
    raise error


def _each_of(script):
    """A function that does the next of the list at each call: returns it, or raises it."""

    def do_next():
        do = script.pop(0)
        return _raise(do) if isinstance(do, Exception) else do

    return do_next


def test_a_failing_nack_leaves_the_batch_unacked(queue, consumer, recorder, monkeypatch):
    recorder.raising = {2: [RetryLater("busy")]}
    send(queue, 1, 2, 3)
    monkeypatch.setattr(client, "nack", lambda *args: _raise(OperationalError("timeout")))

    with pytest.raises(TryAgain):
        consumer.run(until_idle=True)

    assert client.next_batch(queue, "notification_worker") is not None


def test_an_ack_that_is_refused_again_and_again_is_tried_at_a_growing_pace(queue, consumer, recorder, monkeypatch):
    waits = []
    monkeypatch.setattr(client, "ack", lambda batch: _raise(ProgrammingError("permission denied for function ack")))
    monkeypatch.setattr(consumer, "wait", lambda seconds: (waits.append(seconds), len(waits) == 6 and consumer.stop()))
    send(queue, 1)

    consumer.run()

    assert recorder.users == [1]
    assert len(waits) == 6
    assert min(waits) >= 0.1
    assert max(waits) > 0.2


def test_a_stop_leaves_the_rest_of_the_batch_for_the_next_start(queue, consumer, recorder):
    send(queue, 1, 2, 3)
    seen_by_the_first = []
    consumer.handlers = {"ticket.welcome": lambda message: (seen_by_the_first.append(message), consumer.stop())}

    consumer.run()
    Consumer("notification_worker", {"ticket.welcome": recorder}).run(until_idle=True)

    assert len(seen_by_the_first) == 1
    assert recorder.users == [1, 2, 3]


def test_after_an_outage_it_catches_up_though_another_leads_by_then(queue, consumer, monkeypatch):
    caught_up = []
    consumer.catch_up = lambda: caught_up.append(len(waits))
    waits = []
    monkeypatch.setattr(consumer, "wait", lambda seconds: (waits.append(seconds), len(waits) == 2 and consumer.stop()))
    monkeypatch.setattr(consumer._leadership, "held", _each_of([OperationalError("gone"), False, False]))

    consumer.run()

    assert caught_up == [0, 1, 2]


def test_an_outage_that_hinders_catching_up_is_waited_out(queue, consumer, recorder, monkeypatch):
    outage = OperationalError("gone")
    answers = [None, outage, None, None]
    consumer.catch_up = _each_of(answers)
    monkeypatch.setattr(consumer, "wait", lambda seconds: recorder.users and consumer.stop())
    monkeypatch.setattr(consumer._leadership, "held", _each_of([outage, True, True, True]))
    send(queue, 1)

    consumer.run()

    assert (recorder.users, answers) == ([1], [])


def test_a_member_that_cannot_catch_up_at_its_end_leaves_its_group_all_the_same(queue, recorder):
    client.subscribe(queue, catalogue.SLA_BREACH_DISPATCHER)
    answers = [None, OperationalError("gone")]
    member = Consumer(catalogue.SLA_BREACH_DISPATCHER, {}, group=True, catch_up=_each_of(answers))

    member.run(until_idle=True)

    joined = {row["consumer_name"] for row in client.consumer_info() if row["queue_name"] == queue}
    assert f"{catalogue.SLA_BREACH_DISPATCHER}.{member.member}" not in joined
    assert answers == []


@pytest.fixture
def stopping_member(queue):
    """A member that is asked to stop while it handles the first message."""
    client.subscribe(queue, catalogue.SLA_BREACH_DISPATCHER)
    member = Consumer(catalogue.SLA_BREACH_DISPATCHER, {}, group=True)
    member.handlers = {"ticket.welcome": lambda message: member.stop()}
    return member


def test_a_stopping_member_gives_the_rest_of_its_batch_back_at_once(queue, stopping_member, recorder):
    send(queue, 1, 2, 3)

    stopping_member.run()
    while client.maint_retry_events():
        pass
    tick(queue)
    Consumer(catalogue.SLA_BREACH_DISPATCHER, {"ticket.welcome": recorder}, group=True).run(until_idle=True)

    assert recorder.users == [2, 3]


def test_a_stopping_member_with_too_much_left_leaves_it_to_the_retry_queue(
    queue, stopping_member, recorder, monkeypatch
):
    monkeypatch.setattr("stega.pgque.consumer.GIVE_BACK_SECONDS", -1.0)
    send(queue, 1, 2, 3)

    stopping_member.run()
    make_retries_due(queue)
    Consumer(catalogue.SLA_BREACH_DISPATCHER, {"ticket.welcome": recorder}, group=True).run(until_idle=True)

    assert recorder.users == [1, 2, 3]


def test_an_empty_batch_does_not_stop_the_way_to_the_next_event(queue, consumer, recorder):
    for _ in range(200):
        tick(queue)
    send(queue, 1)

    consumer.run(until_idle=True)

    assert recorder.users == [1]


def test_members_of_a_group_share_the_work_and_repeat_none(queue, recorder):
    client.subscribe(queue, catalogue.SLA_BREACH_DISPATCHER)
    other = Recorder()
    send(queue, 1, 2)
    send(queue, 3)
    members = [
        Consumer(catalogue.SLA_BREACH_DISPATCHER, {"ticket.welcome": each}, group=True) for each in (recorder, other)
    ]

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
    start = threading.Barrier(8)
    members = [
        Consumer(catalogue.SLA_BREACH_DISPATCHER, {"ticket.welcome": recorder}, group=True, queue=queue)
        for _ in range(8)
    ]

    def join(member):
        start.wait(timeout=10)
        try:
            member.setup()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(join, members))

    joined = {row["consumer_name"] for row in client.consumer_info() if row["queue_name"] == queue}
    for member in members:
        member.teardown()
    assert joined >= {f"{catalogue.SLA_BREACH_DISPATCHER}.{member.member}" for member in members}


def test_a_group_begins_where_its_consumer_was_subscribed_and_keeps_the_place_between_members(queue, recorder):
    client.subscribe(queue, catalogue.SLA_BREACH_DISPATCHER)
    for user in (1, 2):
        send(queue, user)

        Consumer(catalogue.SLA_BREACH_DISPATCHER, {"ticket.welcome": recorder}, group=True).run(until_idle=True)

    assert recorder.users == [1, 2]


@pytest.mark.parametrize("late", [[], [RetryLater("busy")], [Rejected("no")]])
def test_a_silent_members_batch_is_taken_over_and_its_late_end_finishes_nothing(queue, recorder, late):
    client.subscribe(queue, catalogue.SLA_BREACH_DISPATCHER)
    send(queue, 1)
    silent, live = (
        Consumer(catalogue.SLA_BREACH_DISPATCHER, {"ticket.welcome": recorder}, group=True, dead_interval=60.0)
        for _ in range(2)
    )
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
    client.subscribe(queue, catalogue.SLA_BREACH_DISPATCHER)
    send(queue, 1)
    seen = []

    def handle(message):
        wait_until(lambda: client.consumer_info()[-1]["last_seen"] > timedelta(seconds=0.2), timeout=5)
        seen.append(wait_until(lambda: client.consumer_info()[-1]["last_seen"] < timedelta(seconds=0.1), timeout=5))

    Consumer(catalogue.SLA_BREACH_DISPATCHER, {"ticket.welcome": handle}, group=True, dead_interval=1.2).run(
        until_idle=True
    )

    assert seen == [True]


def leave_open(queue, consumer, died_of):
    """The state after a process died with the batch open, and died of these event ids again since."""
    client.next_batch(queue, consumer)
    for number, event_id in enumerate(died_of):
        (event,) = [each for each in client.batch_events(client.open_batch(queue, consumer), 10) if each.id == event_id]
        MessageInHand.objects.note(queue, consumer, event.id, event.created_at, f"dead-{number}")


def ids(queue):
    batch = client.next_batch(queue, "notification_worker")
    return [event.id for event in client.batch_events(batch, 10)]


def test_a_message_that_three_processes_died_of_is_a_dead_letter_and_its_neighbours_go_on(queue, consumer, recorder):
    send(queue, 1, 2, 3)
    killer = ids(queue)[1]
    leave_open(queue, "notification_worker", [killer, killer])

    consumer.run(until_idle=True)

    assert dead_letters(queue) == {killer: "3 workers died of this message"}
    assert recorder.users == [1, 3]
    assert not MessageInHand.objects.exists()


def test_a_message_that_two_processes_died_of_gets_another_try_and_is_forgotten_when_done(queue, consumer, recorder):
    send(queue, 1, 2, 3)
    leave_open(queue, "notification_worker", [ids(queue)[1]])

    consumer.run(until_idle=True)

    assert recorder.users == [1, 2, 3]
    assert not MessageInHand.objects.exists()


def test_two_killers_in_one_batch_are_both_found(queue, consumer, recorder):
    send(queue, 1, 2, 3)
    first, second, _ = ids(queue)
    leave_open(queue, "notification_worker", [first, first, first, second, second])

    consumer.run(until_idle=True)

    assert set(dead_letters(queue)) == {first, second}
    assert recorder.users == [3]


def test_an_outage_is_no_death_of_the_process_that_waits_it_out(queue, consumer, recorder):
    send(queue, 1)
    leave_open(queue, "notification_worker", [])
    recorder.raising = {1: [OperationalError("away")] * 5}

    for _ in range(5):
        with pytest.raises(OperationalError):
            consumer.run(until_idle=True)
    consumer.run(until_idle=True)

    assert dead_letters(queue) == {}
    assert recorder.users == [1] * 6


def test_a_batch_that_nobody_left_open_is_noted_nowhere(queue, consumer, recorder, monkeypatch):
    monkeypatch.setattr(MessageInHand.objects.__class__, "note", lambda *args: pytest.fail("noted"))
    send(queue, 1)
    consumer.run(until_idle=True)
    send(queue, 2)

    consumer.run(until_idle=True)

    assert recorder.users == [1, 2]


def test_a_second_plain_consumer_stands_by_while_the_first_lives(queue, consumer, recorder):
    with connections["events"].copy().cursor() as other:
        other.execute(
            "select pg_advisory_lock(hashtext('stega'), hashtext(%s))", [f"consumer {queue} notification_worker"]
        )
        send(queue, 1)

        assert consumer.step() is False
        other.connection.close()

    wait_until(consumer._leadership.held, timeout=5)
    consumer.run(until_idle=True)
    assert recorder.users == [1]


@pytest.mark.parametrize(
    ("attempt", "jitter", "seconds"),
    [(0, 1.0, 2), (1, 1.0, 4), (5, 0.5, 32), (20, 1.0, 3600), (10_000, 1.0, 3600), (0, 0.0, 1)],
)
def test_the_pause_before_a_retry_doubles_up_to_an_hour(attempt, jitter, seconds):
    assert retry_delay(attempt, jitter) == timedelta(seconds=seconds)


def test_no_two_starts_share_a_member_name_even_with_one_host_and_pid(monkeypatch):
    monkeypatch.setattr("stega.pgque.consumer.getpid", lambda: 1)
    monkeypatch.setattr("socket.gethostname", lambda: "worker.example.com")

    names = {member_name() for _ in range(100)}

    assert len(names) == 100
    assert all(name.startswith("worker-example-com-1-") for name in names)

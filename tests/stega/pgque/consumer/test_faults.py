"""stega/pgque/consumer.py: a message that fails comes again or becomes a dead letter; its neighbours go on."""

import json

import pytest
from django.db import IntegrityError, ProgrammingError, connections

from stega.database import mismatch
from stega.database.mismatch import OtherSchema
from stega.pgque import client
from stega.pgque.message import Rejected, RetryLater
from tests.stega.pgque.consumer.recording import WELCOME, fail_with, send
from tests.support.event_log import dead_letters, make_retries_due, retries, tick

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


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


def test_a_message_that_fails_by_a_fault_of_ours_ends_as_a_dead_letter(queue, consumer, recorder):
    client.set_queue_config(queue, "max_retries", "4")
    recorder.raising = {1: [ValueError("bug") for _ in range(20)]}
    send(queue, 1)

    count_deliveries(queue, consumer, recorder, 10)

    assert len(recorder.messages) == 5
    assert [reason.partition(" at ")[0] for reason in dead_letters(queue).values()] == ["ValueError"]


def ask_for_a_column_that_is_not_there(message):
    with connections["default"].cursor() as cursor:
        cursor.execute("select nope from stega_outboxentry")


def test_a_column_that_is_not_there_is_a_fault_of_ours_while_every_migration_is_applied(queue, consumer, recorder):
    client.set_queue_config(queue, "max_retries", "2")
    consumer.handlers = {"ticket.welcome": ask_for_a_column_that_is_not_there}
    send(queue, 1)

    count_deliveries(queue, consumer, recorder, 4)

    assert [reason.partition(" at ")[0] for reason in dead_letters(queue).values()] == ["ProgrammingError 42703"]


def test_a_column_that_comes_with_a_migration_is_waited_for_and_costs_no_attempt(
    queue, consumer, recorder, monkeypatch
):
    monkeypatch.setitem(mismatch.differences, "default", lambda: "the default database lacks migration x.0001_y")
    consumer.handlers = {"ticket.welcome": ask_for_a_column_that_is_not_there}
    send(queue, 1)
    for _ in range(5):
        with pytest.raises(OtherSchema, match=r"lacks migration x\.0001_y"):
            consumer.run(until_idle=True)

    consumer.handlers = {"ticket.welcome": recorder}
    consumer.run(until_idle=True)

    assert [message.attempt for message in recorder.messages] == [1]
    assert (dead_letters(queue), retries(queue)) == ({}, [])


@pytest.mark.parametrize("allowed", [0, 2])
def test_the_log_and_the_handler_know_by_the_queues_own_limit_which_delivery_is_the_last(
    queue, consumer, recorder, caplog, allowed
):
    client.set_queue_config(queue, "max_retries", str(allowed))
    recorder.raising = {1: [RetryLater("busy") for _ in range(20)]}
    send(queue, 1)

    count_deliveries(queue, consumer, recorder, allowed + 3)

    told = [line for line in caplog.messages if line.endswith(": busy")]
    assert ["goes to the dead letters" in line for line in told] == [False] * allowed + [True]
    assert [message.is_last for message in recorder.messages] == [False] * allowed + [True]


@pytest.mark.parametrize("here", [4, 5])
def test_a_start_tells_that_the_queue_goes_by_another_limit(queue, consumer, caplog, settings, here):
    settings.PGQUE_MAX_RETRIES = here

    consumer.run(until_idle=True)

    told = f"PGQUE_MAX_RETRIES is {here} here, but queue {queue} goes by 5 until this is run: manage.py pgque_bootstrap"
    assert caplog.messages.count(told) == (here != 5)


def test_a_worker_whose_role_may_not_read_the_limit_goes_by_its_own(queue, consumer, recorder, caplog, monkeypatch):
    monkeypatch.setattr(client, "max_retries", lambda queue: fail_with(ProgrammingError("permission denied")))
    recorder.raising = {1: [RetryLater("busy")]}
    send(queue, 1)

    consumer.run(until_idle=True)

    assert len(retries(queue)) == 1


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

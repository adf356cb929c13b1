"""What is read from the databases, on either engine, and what is told when one of them does not answer."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone
from django_q.models import OrmQ

from notifications.channels.email import REFUSED, UNREACHABLE
from notifications.models import Circuit, Delivery, State
from notifications.notice import Channel
from operations import facts
from operations.facts import databases, ledger, outbox, queues, tasks, tickers
from operations.facts.reading import Question, Trouble, read
from stega.models import OutboxEntry
from stega.pgque import client, session
from stega.pgque.leadership import Leadership
from stega.tasks import schedules
from tests.support import servers
from tests.support.event_log import tick
from tests.support.sessions import Session

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def events_url():
    return servers.events.url(connections["events"].settings_dict["NAME"])


def test_a_queue_and_its_consumers_are_told(queue):
    client.subscribe(queue, "audit")
    client.subscribe_subconsumer(queue, "workers", "one")
    client.insert_event(queue, "ticket.welcome", {}, "")
    tick(queue)

    told = read(queues.question()).value

    (its,) = [each for each in told.queues if each.name == queue]
    assert its.ticker_lag < timedelta(seconds=30)
    assert its.bytes > 0
    assert (its.dead_letters, its.retries, its.max_retries, its.waits_for) == (0, 0, 5, None)
    consumers = {(each.name, each.member): each for each in told.consumers if each.queue == queue}
    assert set(consumers) == {("audit", None), ("workers", None), ("workers", "one")}
    assert consumers["audit", None].pending >= 1
    assert consumers["audit", None].lag is not None
    assert consumers["workers", None].is_group


def test_dead_letters_are_counted_as_long_as_they_are_news(queue, settings):
    client.subscribe(queue, "audit")
    client.insert_event(queue, "ticket.welcome", {}, "")
    tick(queue)
    batch = client.next_batch(queue, "audit")
    for event in client.batch_events(batch, 10):
        client.event_dead(batch, event, "broken")
    client.ack(batch)

    news = read(queues.question()).value
    settings.DEAD_LETTER_ALERT_SECONDS = 0.0001
    old = read(queues.question()).value

    counted = [[each.new_dead_letters for each in told.queues if each.name == queue] for told in (news, old)]
    assert counted == [[1], [0]]
    assert [each.dead_letters for each in old.queues if each.name == queue] == [1]


def test_the_consumer_that_holds_up_the_rotation_is_named(queue):
    client.subscribe(queue, "audit")
    client.insert_event(queue, "ticket.welcome", {}, "")
    with connections["events"].cursor() as cursor:
        cursor.execute("update pgque.tick set tick_time = now() - interval '1 day'")
        cursor.execute(
            "update pgque.queue set queue_switch_time = now() - interval '10 hours' where queue_name = %s", [queue]
        )

    told = read(queues.question()).value

    assert [each.waits_for for each in told.queues if each.name == queue] == [("audit",)]


def test_the_leading_ticker_and_since_when_are_told(transactional_db):
    before = timezone.now() - timedelta(seconds=2)
    assert Leadership("ticker").held()
    pid = connections["events"].connection.info.backend_pid

    with ThreadPoolExecutor(1) as another:
        told = another.submit(read, tickers.question()).result().value
        another.submit(connections.close_all).result()
    connections["events"].close()

    assert told.leader.pid == pid
    assert before <= told.leader.since <= timezone.now() + timedelta(seconds=1)
    assert read(tickers.question()).value.leader is None


def test_no_ticker_is_told_when_a_pooler_hides_it(settings):
    settings.EVENTS_POOLED, settings.EVENTS_DIRECT_DATABASE = True, None

    assert read(tickers.question()).value.is_visible is False
    assert session.connection() is None


def test_due_tasks_and_schedules_are_told():
    schedules.install()
    now = timezone.now()
    OrmQ.objects.create(key="stega", payload="due", lock=now - timedelta(seconds=50))
    OrmQ.objects.create(key="stega", payload="leased", lock=now + timedelta(seconds=50))

    told = read(tasks.question()).value

    assert (told.due, told.leased) == (1, 1)
    assert told.oldest_due >= timedelta(seconds=50)
    assert {each.name for each in told.schedules} >= set(schedules.SCHEDULES)


def test_the_outbox_is_told_by_age():
    now = timezone.now()
    for number, moment in enumerate([now, now - timedelta(minutes=5)]):
        entry = OutboxEntry.objects.create(key=f"{number:032d}", task="x", relayed_at=now if number else None)
        OutboxEntry.objects.filter(pk=entry.pk).update(created_at=moment)
    OutboxEntry.objects.create(key=f"{9:032d}", task="x", failed_at=now)

    told = read(outbox.question()).value

    assert (told.open, told.unrelayed, told.given_up) == (2, 1, 1)
    assert told.oldest_open >= timedelta(minutes=5) > told.oldest_unrelayed
    assert told.last_given_up_at == now


def test_entries_whose_task_fails_are_told_apart_from_those_that_wait():
    now = timezone.now()
    for number, attempts in enumerate([0, 3]):
        entry = OutboxEntry.objects.create(key=f"{number:032d}", task="x", attempts=attempts)
        OutboxEntry.objects.filter(pk=entry.pk).update(created_at=now - timedelta(minutes=1 + 9 * number))

    told = read(outbox.question()).value

    assert (told.open, told.failing) == (2, 1)
    assert told.oldest_open >= timedelta(minutes=10) > timedelta(minutes=2) > told.oldest_untried


def test_an_entry_that_was_let_be_is_not_told_as_given_up():
    OutboxEntry.objects.create(key=f"{1:032d}", task="x", failed_at=timezone.now())
    OutboxEntry.objects.settle(OutboxEntry.objects.values("pk"))

    told = read(outbox.question()).value

    assert (told.open, told.given_up, told.last_given_up_at) == (0, 0, None)


def test_an_entry_that_is_tried_again_ages_from_then_on():
    now = timezone.now()
    old = OutboxEntry.objects.create(key=f"{1:032d}", task="x", relayed_at=now, failed_at=now)
    OutboxEntry.objects.filter(pk=old.pk).update(created_at=now - timedelta(days=3))
    OutboxEntry.objects.reopen(OutboxEntry.objects.values("pk"))

    again = read(outbox.question()).value
    OutboxEntry.objects.update(reopened_at=now - timedelta(minutes=5))
    waiting = read(outbox.question()).value

    assert max(again.oldest_open, again.oldest_unrelayed) < timedelta(minutes=1)
    assert min(waiting.oldest_open, waiting.oldest_unrelayed) >= timedelta(minutes=5)


def test_the_ledger_is_told_by_channel_and_state():
    for state in (State.SENT, State.SENT, State.PENDING):
        Delivery.objects.create(event_type="x", channel=Channel.EMAIL, recipient="user:1", state=state)
    Circuit.objects.create(line="smtp mail:25", failures=4, retry_at=timezone.now())
    Circuit.objects.create(line="slack 0123", failures=0)

    told = read(ledger.question()).value

    counted = {(each.channel, each.state): each.deliveries for each in told.outcomes if each.deliveries}
    assert counted == {("email", "sent"): 2, ("email", "pending"): 1}
    assert {each.channel: each.deliveries for each in told.waiting} == {"email": 1, "slack": 0}
    assert [(line.name, line.channel, line.failures) for line in told.lines] == [("smtp mail:25", "email", 4)]


def mails(*rows):
    """Of the last minutes, the newest first: to whom, in which state, why."""
    now = timezone.now()
    for minutes, (recipient, state, reason) in enumerate(rows, 1):
        Delivery.objects.create(
            **{"event_type": "x", "channel": Channel.EMAIL, "recipient": recipient, "state": state, "reason": reason},
            attempts=1,
            created_at=now - timedelta(minutes=minutes),
        )


PUT_OFF = (State.PENDING, REFUSED)


def test_whom_a_mail_server_puts_off_is_told_since_the_last_mail_that_went_out():
    mails(("a", *PUT_OFF), ("b", *PUT_OFF), ("a", *PUT_OFF), ("c", State.SENT, ""), ("d", *PUT_OFF))

    told = read(ledger.question()).value.put_off

    assert told.people == 2
    assert timedelta(minutes=3) <= told.oldest < timedelta(minutes=4)


@pytest.mark.parametrize("newest", [State.SENT, State.FAILED])
def test_a_mail_server_that_took_or_refused_the_newest_mail_puts_nobody_off(newest):
    mails(("c", newest, ""), ("a", *PUT_OFF), ("b", *PUT_OFF))

    assert read(ledger.question()).value.put_off is None


def test_mails_that_wait_for_another_reason_are_not_put_off():
    mails(("a", State.PENDING, UNREACHABLE), ("b", State.SENDING, ""), ("c", State.SKIPPED, ""))

    assert read(ledger.question()).value.put_off is None


def test_an_open_transaction_is_told_with_its_age():
    with Session(events_url()) as other:
        other.rows("select 1")

        told = read(databases.question("events")).value
        pid = other.connection.info.backend_pid

    assert told.oldest_transaction.pid == pid
    assert told.oldest_transaction.age > timedelta()


def test_a_database_is_told_with_its_engine_and_migrations():
    told = {alias: read(databases.question(alias)).value for alias in ("default", "jobs", "events")}

    assert not any(each.pending_migrations or each.is_read_only or each.is_pooled for each in told.values())
    assert [each.engine is None for each in told.values()] == [True, True, False]
    assert told["events"].engine.is_current
    assert abs(told["default"].clock_skew) < timedelta(seconds=2)


def test_a_migration_that_was_not_applied_is_told():
    with connections["jobs"].cursor() as cursor:
        cursor.execute("delete from django_migrations where app = 'django_q' and name like '0007%%'")
    try:
        pending = read(databases.migrations_question("jobs")).value
    finally:
        with connections["jobs"].cursor() as cursor:
            cursor.execute("insert into django_migrations (app, name, applied) values ('django_q', '0007_ormq', now())")

    assert pending == ("django_q.0007_ormq",)


def test_a_question_is_cut_short_in_time(settings):
    settings.FACTS_SECONDS = 0.3

    def sleep():
        with connections["jobs"].cursor() as cursor:
            cursor.execute("select pg_sleep(20)")

    reading = read(Question("jobs", sleep))

    assert (reading.value, reading.trouble) == (None, Trouble.SILENT)


@pytest.mark.parametrize(
    ("statement", "trouble"),
    [
        ("select * from nowhere", Trouble.UNPREPARED),
        ("select pgque.nothing()", Trouble.UNPREPARED),
        ("select 1 / 0", Trouble.REFUSED),
    ],
)
def test_a_question_that_fails_is_told_as_trouble(statement, trouble):
    def ask():
        with connections["events"].cursor() as cursor:
            cursor.execute(statement)

    assert read(Question("events", ask)).trouble == trouble


def test_a_database_that_is_away_is_named_and_the_others_still_answer():
    connections["jobs"].close()
    servers.jobs.stop()
    try:
        told = facts.gather()
    finally:
        servers.jobs.start()

    assert told.databases["jobs"].trouble == told.tasks.trouble == Trouble.UNREACHABLE
    assert told.databases["default"].value
    assert told.databases["events"].value


def test_asking_changes_nothing_even_in_a_transaction_of_the_caller():
    with transaction.atomic(using="jobs"):
        assert read(Question("jobs", lambda: OrmQ.objects.count())).value == 0

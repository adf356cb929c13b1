"""Processes on databases of another version wait, and nothing is lost meanwhile: new ones before, old ones after."""

from collections import Counter
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connections, transaction
from django.utils import timezone

from notifications.models import Delivery
from stega import outbox
from stega.models import OutboxEntry
from stega.pgque import client
from stega.pgque.publishing import event_key, publish
from tests.factories import make_product, make_ticket, make_user
from tests.processes.test_faults import PROCESSES
from tests.support.event_log import dead_letters, retries
from tests.support.waiting import wait_until
from tickets.tasks import check_sla_breaches

QUICK = {"TASK_TIMEOUT_SECONDS": 2, "TASK_RETRY_SECONDS": 3}


@pytest.fixture
def migrations(event_log):
    """`take_back()` makes the tables those of the former version, `apply()` those of this one."""

    class Migrations:
        def take_back(self):
            call_command("migrate", "notifications", "0005_console_indexes", verbosity=0)
            call_command("migrate", "tickets", "0002_list_by_deadline", verbosity=0)

        def apply(self):
            call_command("migrate", verbosity=0)

    yield Migrations()
    call_command("migrate", verbosity=0)


@pytest.fixture
def people(migrations):
    return [make_user(f"customer-{number}") for number in range(5)]


def promise(people):
    """What tasks are to publish: a breach, which needs the new tables, and a welcome, which does not."""
    make_ticket(people[0], make_product(), due_in=timedelta(hours=-1))
    check_sla_breaches()
    with transaction.atomic():
        outbox.enqueue("send_welcome_notification", people[0].pk)
    OutboxEntry.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    outbox.sweep()


def welcome(people):
    for person in people:
        payload = {"user_id": person.pk, "email": person.email, "display_name": person.display_name}
        publish("ticket.welcome", payload, event_key("ticket.welcome", person.pk))


def test_workers_that_start_before_the_migrations_burn_nothing_and_tell_everybody_once_after(
    start, mailbox, settings, admin, people, migrations
):
    promise(people)
    migrations.take_back()
    welcome(people[1:])
    processes = {command: start(command, saying=saying, **QUICK) for command, saying in PROCESSES.items()}
    consumer, cluster = processes["notification_worker"], processes["qcluster"]
    consumer.wait_for("default database lacks migration notifications.0006_uncertain_tries")
    wait_until(lambda: cluster.output.count("(column tickets_ticket.form_key does not exist)") > 1, timeout=30)

    waiting = [*mailbox.received, *retries(settings.PGQUE_QUEUE)]
    migrations.apply()
    wanted = Counter([person.email for person in people] + [admin.email])
    wait_until(lambda: Counter(mailbox.addresses()) >= wanted, timeout=60)
    wait_until(lambda: not OutboxEntry.objects.filter(done_at=None).exists(), timeout=20)

    assert waiting == []
    assert Counter(mailbox.addresses()) == wanted
    assert set(OutboxEntry.objects.values_list("attempts", "failed_at")) == {(0, None)}
    assert set(Delivery.objects.filter(channel="email").values_list("attempts", flat=True)) == {1}
    assert dead_letters(settings.PGQUE_QUEUE) == {}
    assert consumer.output.count("python manage.py migrate --database=default") == 1
    assert "notification_worker goes on after" in consumer.output
    assert all(process.is_running() for process in processes.values())


@pytest.fixture
def lose_a_column(event_log):
    """Take a column away that the ledger needs, as a newer version's migration would; `bring_back` is the contrary."""

    def run(statement):
        with connections["default"].cursor() as cursor:
            cursor.execute(statement)

    def bring_back():
        run("alter table notifications_delivery rename column lost to uncertain_tries")
        run("delete from django_migrations where name = '0099_newer'")

    def lose_a_column(*, recorded):
        run("alter table notifications_delivery rename column uncertain_tries to lost")
        if recorded:
            run("insert into django_migrations (app, name, applied) values ('notifications', '0099_newer', now())")
        return bring_back

    yield lose_a_column
    run("delete from django_migrations where name = '0099_newer'")
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "select from pg_attribute where attrelid = 'notifications_delivery'::regclass and attname = 'lost'"
        )
        if cursor.rowcount:
            bring_back()


def test_a_worker_that_goes_on_after_a_newer_migration_waits_and_says_that_it_is_to_be_restarted(
    start, mailbox, settings, customer, lose_a_column
):
    client.set_queue_config(settings.PGQUE_QUEUE, "max_retries", "0")
    start("pgque_ticker")
    worker = start("notification_worker", **QUICK)
    bring_back = lose_a_column(recorded=True)

    welcome([customer])
    worker.wait_for("migration notifications.0099_newer, which this process does not know. Restart this process")
    bring_back()

    wait_until(lambda: mailbox.addresses() == [customer.email], timeout=30)
    assert dead_letters(settings.PGQUE_QUEUE) == {}


def test_a_column_that_is_missing_while_every_migration_is_applied_makes_a_dead_letter(
    start, mailbox, settings, customer, lose_a_column
):
    client.set_queue_config(settings.PGQUE_QUEUE, "max_retries", "0")
    start("pgque_ticker")
    start("notification_worker", **QUICK)
    lose_a_column(recorded=False)

    welcome([customer])

    wait_until(lambda: dead_letters(settings.PGQUE_QUEUE), timeout=60)
    assert [reason.partition(" at ")[0] for reason in dead_letters(settings.PGQUE_QUEUE).values()] == [
        "ProgrammingError 42703"
    ]

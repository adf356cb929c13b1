"""Processes of a new version on databases of the former one wait for the migrations, and nothing is lost meanwhile."""

from collections import Counter
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from notifications.models import Delivery
from stega import outbox
from stega.models import OutboxEntry
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

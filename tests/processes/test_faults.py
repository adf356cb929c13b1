"""What is killed or away loses nothing, and tells at most the one in flight twice."""

import os
import signal
import sys
import uuid
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.db.models import F
from django.utils import timezone
from django_q.models import Schedule

from accounts.models import User
from notifications.models import Delivery, State
from operations.facts import queues
from operations.facts.reading import read
from stega import outbox
from stega.models import OutboxEntry
from stega.pgque import client
from stega.pgque.publishing import event_key, publish
from stega.tasks import schedules
from tests.factories import PASSWORD, make_product, make_ticket
from tests.support import servers
from tests.support.browser import Browser
from tests.support.event_log import tick
from tests.support.processes import RunningProcess, free_port, manage, run_task
from tests.support.waiting import wait_until
from tickets.tasks import check_sla_breaches

PROCESSES = {
    "pgque_ticker": "started",
    "notification_worker": "started",
    "sla_breach_worker": "started",
    "qcluster": "ready for work",
}
"""Each process command, and what it says when it works."""


@pytest.fixture
def people():
    names = [f"customer-{number}" for number in range(50)]
    return User.objects.bulk_create(
        User(username=name, email=f"{name}@example.com", display_name=name) for name in names
    )


def send_welcomes(settings, people):
    for person in people:
        payload = {"user_id": person.pk, "email": person.email, "display_name": person.display_name}
        publish("ticket.welcome", payload, event_key("ticket.welcome", person.pk))


def test_a_worker_killed_in_the_middle_of_a_batch_tells_everybody_and_at_most_one_twice(
    start, mailbox, settings, people
):
    send_welcomes(settings, people)
    tick(settings.PGQUE_QUEUE)
    start("pgque_ticker")
    mailbox.data = lambda mail: mailbox.gate.clear() if len(mailbox.received) == 20 else None
    worker = start("notification_worker")
    wait_until(lambda: len(mailbox.received) == 21, timeout=20)

    worker.kill()
    mailbox.data = lambda mail: None
    mailbox.gate.set()
    start("notification_worker")

    wait_until(lambda: Delivery.objects.filter(state=State.SENT).count() == 50, timeout=60)
    told = Counter(mailbox.addresses())
    assert set(told) == {person.email for person in people}
    assert sum(told.values()) <= 51


def test_all_55_events_of_one_batch_are_handled(start, mailbox, settings, people):
    more = [User(username=f"more-{number}", email=f"more-{number}@example.com") for number in range(5)]
    everybody = [*people, *User.objects.bulk_create(more)]
    send_welcomes(settings, everybody)
    tick(settings.PGQUE_QUEUE)

    start("notification_worker")

    wait_until(lambda: len(mailbox.received) >= 55, timeout=60)
    assert Counter(mailbox.addresses()) == Counter(person.email for person in everybody)


def let_a_minute_pass():
    """For what waits in the outbox, and for the schedules that look after it each minute."""
    minute = timedelta(minutes=1)
    OutboxEntry.objects.open().update(created_at=F("created_at") - minute, relayed_at=F("relayed_at") - minute)
    Schedule.objects.update(next_run=F("next_run") - minute)


@pytest.mark.parametrize("alias", ["events", "jobs"])
def test_a_database_that_is_away_costs_no_page_and_no_event(start, site, mailbox, customer, agent, alias):
    schedules.install()
    ticket = make_ticket(author=customer, product=make_product())
    start("qcluster", saying="ready for work")
    start("pgque_ticker")
    start("notification_worker")
    person = Browser(site)
    server = servers.by_alias[alias]
    connections[alias].close()
    server.stop()
    try:
        pages = [
            person.sign_in(customer.username, PASSWORD),
            person.get("/"),
            person.post(f"/tickets/{ticket.pk}/comment/", form_at=f"/tickets/{ticket.pk}/", body="Still there?"),
        ]
    finally:
        server.start()
    let_a_minute_pass()

    assert [page.status for page in pages] == [200, 200, 200]
    wait_until(lambda: customer.email in mailbox.addresses(), timeout=120)
    assert mailbox.addresses().count(customer.email) == 1


def test_two_notification_workers_tell_each_person_once(start, mailbox, settings, people):
    workers = [start("notification_worker") for _ in range(2)]
    start("pgque_ticker")

    send_welcomes(settings, people)

    wait_until(lambda: len(mailbox.received) >= 50, timeout=60)
    assert Counter(mailbox.addresses()) == Counter(person.email for person in people)
    assert sum("stands by" in worker.output for worker in workers) == 1


def test_a_web_process_that_dies_right_after_the_commit_still_gets_the_person_welcomed(start, env, mailbox, customer):
    dies = (
        "import os, django; django.setup()\n"
        "from django.utils import timezone\n"
        "from accounts import actions; from accounts.models import User; from stega import outbox\n"
        "outbox.relay_now = lambda *_: os._exit(9)\n"
        "actions.record_first_sign_in(User.objects.get(), timezone.now())\n"
    )
    with RunningProcess(sys.executable, "-c", dies, env=env | {"DJANGO_SETTINGS_MODULE": "stega.settings"}) as dying:
        assert dying.wait() == 9, dying.output
    assert OutboxEntry.objects.get().relayed_at is None
    OutboxEntry.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    start("qcluster", saying="ready for work")
    start("pgque_ticker")
    start("notification_worker")

    run_task("stega.outbox.sweep")

    wait_until(lambda: mailbox.addresses() == [customer.email], timeout=30)


def test_a_killed_members_batch_is_finished_by_another_once(start, mailbox, customer, admin):
    ticket = make_ticket(customer, make_product(), due_in=timedelta(minutes=-1))
    check_sla_breaches()
    for entry in OutboxEntry.objects.all():
        outbox.perform(str(entry.key))
    mailbox.gate.clear()
    killed = start("sla_breach_worker", "--dead-interval", "2")
    start("pgque_ticker")
    wait_until(lambda: mailbox.received, timeout=20)

    killed.kill()
    mailbox.gate.set()
    start("sla_breach_worker", "--dead-interval", "2")

    wait_until(lambda: Delivery.objects.filter(ticket_id=ticket.pk, state=State.SENT).count() == 1, timeout=40)
    assert set(mailbox.addresses()) == {admin.email}
    assert len(mailbox.received) <= 2


def test_a_killed_member_is_told_to_be_gone_and_the_living_one_is_not(start):
    def members():
        log = read(queues.question()).value
        return {each.member: each.is_gone for each in log.consumers if each.member}

    killed = start("sla_breach_worker")
    (of_killed,) = members()
    start("sla_breach_worker")

    killed.kill()
    with connections["events"].cursor() as cursor:
        older = "update pgque.subscription set sub_active = sub_active - interval '43 s' where sub_role = 'coop_member'"
        cursor.execute(older)

    wait_until(lambda: [name for name, is_gone in members().items() if is_gone] == [of_killed], timeout=20)
    assert len(members()) == 2


def test_a_message_nacked_for_a_while_comes_back_by_the_ticker_alone(start, mailbox, settings, people):
    refusals = iter(["450 4.2.1 come back later"])
    mailbox.rcpt = lambda address: next(refusals, None)
    send_welcomes(settings, people[:3])
    start("notification_worker")

    start("pgque_ticker")

    wait_until(lambda: len(mailbox.received) == 3, timeout=60)
    assert Counter(mailbox.addresses()) == Counter(person.email for person in people[:3])


def test_a_ticker_takes_over_from_a_killed_one(start):
    first = start("pgque_ticker", saying="leads")
    second = start("pgque_ticker", saying="stands by")

    first.kill()

    second.wait_for("ticker leads", timeout=2)


def test_a_ticker_takes_over_from_a_frozen_one_which_stands_by_when_it_wakes(start):
    first = start("pgque_ticker", saying="leads", TICKER_DEAD_SECONDS=1)
    second = start("pgque_ticker", saying="stands by", TICKER_DEAD_SECONDS=1)

    os.kill(first.pid, signal.SIGSTOP)
    second.wait_for("ticker leads", timeout=10)
    os.kill(first.pid, signal.SIGCONT)

    first.wait_for("ticker stands by", timeout=10)


def test_the_same_event_published_twice_is_told_once(start, mailbox, settings, people):
    for _ in range(2):
        send_welcomes(settings, people[:3])
    start("pgque_ticker")

    start("notification_worker")

    wait_until(lambda: not client.consumer_info() or _pending(settings) == 0, timeout=30)
    assert Counter(mailbox.addresses()) == Counter(person.email for person in people[:3])


def _pending(settings):
    rows = [row for row in client.consumer_info() if row["consumer_name"] == "notification_worker"]
    return rows[0]["pending_events"]


@pytest.mark.parametrize(("command", "saying"), PROCESSES.items())
def test_a_process_ends_cleanly_on_sigterm(start, command, saying):
    process = start(command, saying=saying)

    assert process.terminate() == 0, process.output


def test_a_member_leaves_its_group_when_it_stops(start):
    for _ in range(3):
        start("sla_breach_worker").terminate()

    assert not [row for row in client.consumer_info() if "." in row["consumer_name"]]


@pytest.mark.parametrize("command", [*PROCESSES, "pgque_status"])
def test_an_unreachable_database_at_the_start_is_one_clear_line(env, command):
    nowhere = "postgresql://postgres@127.0.0.1:9"
    away = {"EVENTS_DATABASE_URL": f"{nowhere}/events", "JOBS_DATABASE_URL": f"{nowhere}/jobs"}
    with manage(command, env={**env, **away}) as process:
        code = process.wait()

        lines = [line for line in process.output.splitlines() if line.startswith("stega: ")]
        assert code == 1
        assert len(lines) == 1
        assert "DATABASE_URL" in lines[0]
        assert "Traceback" not in process.output


@pytest.mark.parametrize("command", ["pgque_ticker", "notification_worker", "sla_breach_worker", "pgque_status"])
def test_a_missing_bootstrap_is_one_clear_line(env, command):
    with connections["events"].cursor() as cursor:
        cursor.execute("create database without_event_log")
    try:
        url = servers.events.url("without_event_log")
        with manage(command, env={**env, "EVENTS_DATABASE_URL": url}) as process:
            assert process.wait() == 1
            assert "Run: python manage.py pgque_bootstrap" in process.output
            assert "Traceback" not in process.output
    finally:
        with connections["events"].cursor() as cursor:
            cursor.execute("drop database without_event_log")


def test_a_wrong_database_url_is_one_clear_line(env):
    with manage("pgque_ticker", env={**env, "EVENTS_DATABASE_URL": f"mysql://u:{uuid.uuid4()}@h/d"}) as process:
        assert process.wait() == 1
        assert process.output.startswith("stega: EVENTS_DATABASE_URL")
        assert process.output.count("\n") == 1


PRODUCTION = {
    "STEGA_DEBUG": "0",
    "STEGA_SECRET_KEY": "a-secret-of-fifty-characters-or-more-0123456789-abcdefghij",
    "STEGA_BASE_URL": "http://localhost:8000",
}


@pytest.mark.parametrize(
    ("unsafe", "said"),
    [
        ({"STEGA_SECRET_KEY": ""}, "STEGA_SECRET_KEY is not set"),
        ({"STEGA_SECRET_KEY": "short"}, "stega.E006"),
        ({"STEGA_BASE_URL": "http://help.example.com"}, "stega.E007"),
    ],
)
def test_the_web_process_refuses_unsafe_settings_with_one_clear_line(env, unsafe, said):
    command = [sys.executable, "-m", "gunicorn", "stega.wsgi", "--bind", f"127.0.0.1:{free_port()}"]
    with RunningProcess(*command, env={**env, **PRODUCTION, **unsafe}) as process:
        assert process.wait() != 0
        assert [line for line in process.output.splitlines() if line.startswith("stega: ") and said in line]
        assert "Traceback" not in process.output


def test_tasks_signed_with_another_key_are_done_after_the_sweep(start, customer):
    schedules.install()
    with transaction.atomic():
        outbox.enqueue("send_welcome_notification", customer.pk)
    OutboxEntry.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    outbox.sweep()
    cluster = start("qcluster", saying="ready for work", STEGA_SECRET_KEY="another-key", OUTBOX_LOST_AFTER_SECONDS=1)
    cluster.wait_for("Failed to push task to queue")
    let_a_minute_pass()

    wait_until(lambda: not OutboxEntry.objects.open().exists(), timeout=90)

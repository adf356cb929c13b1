"""Every long-running process gets over what happens to one database after the other, without a restart of its own."""

import time
from collections import Counter
from datetime import timedelta

import psutil
import pytest
from django.db import connections, transaction
from django.utils import timezone
from django_q.models import Failure, Success

from stega import outbox
from stega.models import OutboxEntry
from stega.pgque.publishing import event_key, publish
from tests.factories import make_product, make_ticket, make_user
from tests.processes.test_faults import PROCESSES
from tests.support import servers
from tests.support.processes import run_task
from tests.support.waiting import wait_until
from tickets.tasks import check_sla_breaches

ALIASES = ("default", "jobs", "events")


def restart(alias, work, has_complained):
    connections[alias].close()
    servers.by_alias[alias].stop()
    servers.by_alias[alias].start()


def cut(alias, work=None, has_complained=None):
    """End every connection to the database but this one."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )


def fail_over(alias, work, has_complained):
    """The server comes back taking no writes, and takes them again once somebody has noticed.

    Sessions made meanwhile stay read-only, as those to a former primary do: only new ones may write.
    """
    connection = connections[alias]
    database = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"alter database {database} set default_transaction_read_only = on")
        cut(alias)
        work()
        try:
            wait_until(lambda: has_complained("read-only"), timeout=20)
        finally:
            cursor.execute(f"alter database {database} reset default_transaction_read_only")


@pytest.mark.parametrize("happen", [restart, cut, fail_over])
def test_all_processes_go_on_after(start, mailbox, admin, happen):
    require_all_to_go_on(start, mailbox, admin, happen)


def require_all_to_go_on(start, mailbox, admin, happen, aliases=ALIASES):
    """Let it happen to one database after the other under all processes: everybody is told once, nobody has ended."""
    quick = {"TASK_TIMEOUT_SECONDS": 2, "TASK_RETRY_SECONDS": 3}
    processes = [start(command, saying=saying, **quick) for command, saying in PROCESSES.items()]
    wanted = Counter()

    def work():
        """A welcome and a breach: each process has a part in telling them."""
        person = make_user(f"customer-{len(wanted)}")
        make_ticket(person, make_product(f"Shop {len(wanted)}"), due_in=timedelta(hours=-1))
        check_sla_breaches()
        with transaction.atomic():
            outbox.enqueue("send_welcome_notification", person.pk)
        OutboxEntry.objects.filter(relayed_at=None).update(created_at=timezone.now() - timedelta(minutes=1))
        outbox.sweep()
        wanted.update([person.email, admin.email])

    for alias in aliases:
        said = {process: len(process.output) for process in processes}
        happen(alias, work, lambda words, said=said: any(words in each.output[said[each] :] for each in processes))
        work()
        wait_until(lambda: mailbox.addresses() and Counter(mailbox.addresses()) >= wanted, timeout=40)

    assert Counter(mailbox.addresses()) == wanted
    assert all(process.is_running() for process in processes)


def test_a_worker_hears_wake_ups_again_after_its_connection_was_cut(start, mailbox, customer):
    start("pgque_ticker")
    worker = start("notification_worker", "--interval", "600")
    cut("events")
    wait_until(lambda: "goes on after" in worker.output, timeout=20)
    wait_until(worker_is_idle, timeout=20)

    welcome(customer)

    wait_until(lambda: mailbox.addresses() == [customer.email], timeout=20)


def test_a_worker_whose_server_is_away_rests_between_its_tries(start):
    worker = start("notification_worker")
    connections["events"].close()
    servers.by_alias["events"].stop()
    try:
        wait_until(lambda: "will try again" in worker.output, timeout=20)
        before, begin = cpu_seconds(worker), time.monotonic()
        wait_until(lambda: time.monotonic() - begin > 3, timeout=20)
        spent = cpu_seconds(worker) - before
    finally:
        servers.by_alias["events"].start()

    assert spent < 0.5


def test_four_task_workers_share_no_connection(start):
    cluster = start("qcluster", saying="ready for work", TASK_WORKERS=4)

    for _ in range(200):
        run_task("stega.outbox.prune")

    wait_until(lambda: Success.objects.filter(func="stega.outbox.prune").count() >= 200, timeout=60)
    assert not Failure.objects.exists()
    assert "Traceback" not in cluster.output


def worker_is_idle():
    """The notification worker listens, and has nothing to do."""
    with connections["events"].cursor() as cursor:
        cursor.execute(
            "select count(*) from pg_stat_activity where application_name = 'notification_worker' and state = 'idle'"
        )
        return cursor.fetchone()[0] > 0


def welcome(person):
    payload = {"user_id": person.pk, "email": person.email, "display_name": person.display_name}
    publish("ticket.welcome", payload, event_key("ticket.welcome", person.pk))


def cpu_seconds(process):
    times = psutil.Process(process.pid).cpu_times()
    return times.user + times.system

"""Every long-running process gets over what happens to one database after the other, without a restart of its own."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone

from stega import outbox
from stega.models import OutboxEntry
from tests.factories import make_product, make_ticket, make_user
from tests.processes.test_faults import PROCESSES
from tests.support import servers
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

    for alias in ALIASES:
        said = {process: len(process.output) for process in processes}
        happen(alias, work, lambda words, said=said: any(words in each.output[said[each] :] for each in processes))
        work()
        wait_until(lambda: mailbox.addresses() and Counter(mailbox.addresses()) >= wanted, timeout=40)

    assert Counter(mailbox.addresses()) == wanted
    assert all(process.is_running() for process in processes)

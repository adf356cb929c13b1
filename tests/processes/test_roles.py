"""The whole line, each process with the rights of its own kind alone."""

import uuid
from collections import Counter

import psycopg
import pytest
from django.db import connections
from django.utils import timezone

from accounts.models import User
from stega.pgque import client
from stega.privileges import KINDS
from stega.provisioning import provision
from tests.factories import PASSWORD, make_product
from tests.processes.test_faults import PROCESSES
from tests.support import processes, servers
from tests.support.browser import Browser
from tests.support.processes import VARIABLES, manage, run_task
from tests.support.waiting import wait_until
from tickets.models import Ticket

KIND_OF = {
    "qcluster": "tasks",
    "pgque_ticker": "ticker",
    "notification_worker": "notifications",
    "sla_breach_worker": "sla",
}


@pytest.fixture
def prefix(event_log):
    """Provisioned roles on the test databases; gone after the test, with all they were given."""
    prefix = f"line_{uuid.uuid4().hex[:8]}"
    provision(prefix, {}, reset_passwords=False, dry_run=False, say=lambda line: None)
    yield prefix
    for alias in servers.by_alias:
        with psycopg.connect(_url(alias, "postgres"), autocommit=True) as superuser:
            for role in (f"{prefix}_{kind}" for kind in KINDS if alias in KINDS[kind]):
                superuser.execute(f"drop owned by {role}")
                superuser.execute(f"drop role {role}")
            database = connections[alias].settings_dict["NAME"]
            superuser.execute(f'grant connect, temporary on database "{database}" to public')


def _url(alias, role):
    return (
        servers.by_alias[alias].url(str(connections[alias].settings_dict["NAME"])).replace("//postgres@", f"//{role}@")
    )


@pytest.fixture
def as_kind(prefix):
    """The database URLs of a kind of process."""
    return lambda kind: {VARIABLES[alias]: _url(alias, f"{prefix}_{kind}") for alias in VARIABLES}


def test_a_breached_sla_goes_from_the_browser_to_people_with_each_process_in_its_own_role(
    start, env, as_kind, mailbox, slack, customer, admin
):
    product = make_product(sla_critical_minutes=1, slack_webhook_url=slack.url)
    User.objects.exclude(pk=customer.pk).update(first_signed_in_at=timezone.now())
    workers = [start(command, saying=PROCESSES[command], **as_kind(kind)) for command, kind in KIND_OF.items()]
    web, site = processes.web({**env, **as_kind("web")})
    with web:
        person = Browser(site)

        signed_in = person.sign_in(customer.username, PASSWORD)
        opened = person.post("/tickets/new/", title="Down", body="Nothing", product=product.pk, priority="critical")
        Ticket.objects.update(sla_due_at=timezone.now())
        run_task("tickets.tasks.check_sla_breaches")
        wait_until(lambda: len(mailbox.received) >= 2 and slack.received, timeout=30)
        said = web.output + "".join(worker.output for worker in workers)

    assert (signed_in.status, opened.status) == (200, 200)
    assert Counter(mailbox.addresses()) == {customer.email: 1, admin.email: 1}
    assert len(slack.received) == 1
    assert "permission denied" not in said


@pytest.mark.parametrize("kind", ["console", "monitor", "web"])
def test_who_examines_the_installation_sees_what_there_is_and_takes_nothing_hidden_for_dead(start, env, as_kind, kind):
    for command, role in KIND_OF.items():
        start(command, saying=PROCESSES[command], **as_kind(role))
    wait_until(lambda: client.queue_info()[0]["last_tick_id"] > 1, timeout=20)

    with manage("doctor", env={**env, **as_kind(kind)}) as doctor:
        code = doctor.wait()
        said = doctor.output

    assert code == 0, said

"""The whole line, each process with the rights of its own kind alone."""

import re
import uuid
from collections import Counter

import psycopg
import pytest
from django.db import connections
from django.utils import timezone

from accounts.models import User
from notifications.handlers import NOTICES
from operations.models import OperatorAction, State
from stega.installation.privileges import KINDS
from stega.installation.provisioning import provision
from stega.pgque import client
from stega.pgque.message import Message
from tests.factories import PASSWORD, make_product, make_ticket
from tests.notifications.test_messages import PAYLOADS
from tests.processes.test_faults import PROCESSES
from tests.support import event_log, processes, servers
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


def test_an_operator_reads_a_dead_letter_on_the_console_alone_and_the_task_worker_purges_it(
    start, env, as_kind, settings, admin
):
    User.objects.update(first_signed_in_at=timezone.now())
    client.insert_event(settings.PGQUE_QUEUE, "ticket.exploded", {"told": "in confidence"}, str(uuid.uuid4()))
    for command, kind in KIND_OF.items():
        start(command, saying=PROCESSES[command], **as_kind(kind))
    letter, other = wait_until(lambda: _of_both_consumers(settings.PGQUE_QUEUE), timeout=20)
    page, question = f"/admin/operations/dead-letters/{letter}/", f"/admin/operations/do/purge_letter/?id={letter}"

    shown = {}
    for kind in ("web", "console"):
        process, site = processes.web({**env, **as_kind(kind)})
        with process:
            operator = Browser(site)
            operator.sign_in(admin.username, PASSWORD)
            shown[kind] = operator.get(page)
            if kind == "console":
                hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', operator.get(question).text)
                operator.post(question, **dict(hidden), reason="nobody needs it")

    wait_until(lambda: OperatorAction.objects.get().state == State.DONE, timeout=20)
    assert [each["dl_id"] for each in event_log.inspected(settings.PGQUE_QUEUE)] == [other]
    assert [each.status for each in shown.values()] == [200, 200]
    assert ["in confidence" in shown[kind].text for kind in ("web", "console")] == [False, True]


@pytest.mark.parametrize("kind", ["notifications", "sla"])
def test_every_event_is_worded_with_the_rights_of_a_worker(prefix, kind, customer, agent, admin):
    ticket = make_ticket(customer, make_product(), assignee=agent, sla_breached_at=timezone.now())
    comment = ticket.comments.create(author=customer, body="Still broken", created_at=timezone.now())
    concerned = {"ticket_id": ticket.pk, "user_id": customer.pk, "assignee_id": agent.pk, "comment_id": comment.pk}
    people = {"actor_id": admin.pk, "author_id": customer.pk}

    with connections["default"].cursor() as cursor:
        cursor.execute(f"set role {prefix}_{kind}")
        try:
            told = {name: NOTICES[name](_event(name, {**PAYLOADS[name], **concerned, **people})) for name in NOTICES}
        finally:
            cursor.execute("reset role")

    assert [name for name, notices in told.items() if not any(not each.skip for each in notices)] == []


def _event(name, payload):
    return Message(1, 1, name, payload, str(uuid.uuid4()), 1, timezone.now())


def _of_both_consumers(queue):
    """The dead letters of an event that both consumers refuse, once both have."""
    letters = [each["dl_id"] for each in event_log.inspected(queue)]
    return letters if len(letters) == 2 else None

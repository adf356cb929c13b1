"""tickets/tasks.py: what is published, and the scan for breached SLAs."""

import threading
import uuid
from datetime import UTC, timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone

from stega.models import OutboxEntry
from stega.pgque.publishing import event_key
from tests.factories import make_product, make_ticket
from tests.support.event_log import published_by
from tests.support.together import at_once
from tickets import actions, tasks
from tickets.models import Ticket, TicketEvent

pytestmark = pytest.mark.django_db

KEY = uuid.UUID("00000000-0000-0000-0000-000000000001")
LATE = timedelta(hours=-1)


@pytest.fixture
def published(monkeypatch):
    return published_by(tasks, monkeypatch)


@pytest.fixture
def ticket(customer, product):
    return make_ticket(customer, product)


def perform_promised():
    """Run the tasks in the outbox as the task worker does."""
    for entry in OutboxEntry.objects.order_by("pk"):
        getattr(tasks, entry.task)(*entry.args, event_key=entry.key)


def test_an_opened_ticket_is_published(published, customer, product):
    ticket = actions.open_ticket(customer, product, "Down", "All of it", "critical")

    perform_promised()

    payload = {"ticket_id": ticket.pk, "title": "Down", "priority": "critical", "product_name": "Shop"}
    assert published == [("ticket.created", payload, event_key("ticket.created", ticket.events.get().pk))]


def test_an_assignment_is_published(published, agent, ticket):
    actions.take(agent, ticket.pk)

    perform_promised()

    [(event_type, payload, _)] = published
    people = {"assignee_id": agent.pk, "actor_id": agent.pk}
    assert (event_type, payload) == ("ticket.assigned", {"ticket_id": ticket.pk, "title": ticket.title, **people})


def test_a_change_of_status_is_published(published, admin, ticket):
    actions.change_status(admin, ticket.pk, "waiting")

    perform_promised()

    [(event_type, payload, _)] = published
    change = {"old_status": "open", "new_status": "waiting", "actor_id": admin.pk}
    assert (event_type, payload) == ("ticket.status_changed", {"ticket_id": ticket.pk, "title": ticket.title, **change})


def test_a_comment_is_published(published, customer, ticket):
    comment = actions.comment(customer, ticket.pk, "Still broken")

    perform_promised()

    [(event_type, payload, _)] = published
    by = {"comment_id": comment.pk, "author_id": customer.pk}
    assert (event_type, payload) == ("ticket.comment_added", {"ticket_id": ticket.pk, "title": ticket.title, **by})


def test_a_resolution_is_published(published, admin, ticket):
    actions.change_status(admin, ticket.pk, "resolved")

    perform_promised()

    [(event_type, payload, _)] = published
    expected = {"ticket_id": ticket.pk, "title": ticket.title, "actor_id": admin.pk}
    assert (event_type, payload) == ("ticket.resolved", expected)


@pytest.mark.parametrize(
    "task",
    [
        "publish_ticket_created",
        "publish_ticket_assigned",
        "publish_ticket_status_changed",
        "publish_ticket_comment_added",
        "publish_ticket_resolved",
        "publish_sla_breached",
    ],
)
def test_what_is_gone_is_not_published(published, task):
    result = getattr(tasks, task)(4711, event_key=KEY)

    assert (result, published) == ({"skipped": "the ticket is gone"}, [])


def test_a_breach_is_published_with_the_payload_of_the_catalogue(published, customer, product):
    ticket = make_ticket(customer, product, title="Down", priority="high", age=timedelta(hours=9.5), due_in=LATE)
    tasks.check_sla_breaches()

    perform_promised()

    payload = {"ticket_id": ticket.pk, "title": "Down", "priority": "high", "product_name": "Shop", "elapsed_hours": 9}
    key = event_key("ticket.sla_breached", ticket.pk, ticket.sla_due_at.astimezone(UTC).isoformat())
    assert published == [("ticket.sla_breached", payload, key)]


@pytest.mark.parametrize("status", ["open", "in_progress"])
def test_a_late_ticket_is_a_breach(customer, product, status):
    ticket = make_ticket(customer, product, status=status, due_in=LATE)

    assert tasks.check_sla_breaches() == {"breaches_found": 1}

    ticket.refresh_from_db()
    assert ticket.sla_breached_at is not None
    assert ticket.events.get().type == "sla_breached"


@pytest.mark.parametrize(
    ("status", "due_in"),
    [("open", timedelta(minutes=1)), ("waiting", LATE), ("resolved", LATE), ("closed", LATE)],
)
def test_a_ticket_in_time_or_at_rest_is_no_breach(customer, product, status, due_in):
    make_ticket(customer, product, status=status, due_in=due_in)

    assert tasks.check_sla_breaches() == {"breaches_found": 0}


def test_a_hundred_scans_tell_of_a_breach_once(customer, product):
    make_ticket(customer, product, due_in=LATE)

    found = [tasks.check_sla_breaches()["breaches_found"] for _ in range(100)]

    assert sum(found) == 1
    assert OutboxEntry.objects.count() == TicketEvent.objects.count() == 1


def test_a_new_deadline_may_be_missed_again(agent, customer, product):
    ticket = make_ticket(customer, product, priority="critical", due_in=LATE, age=timedelta(hours=5))
    tasks.check_sla_breaches()
    actions.change_priority(agent, ticket.pk, "low")
    Ticket.objects.update(sla_due_at=timezone.now() - timedelta(minutes=1))

    assert tasks.check_sla_breaches() == {"breaches_found": 1}

    assert OutboxEntry.objects.count() == 2


def test_more_breaches_than_a_chunk_are_all_found(customer, product, monkeypatch):
    monkeypatch.setattr(tasks, "SCAN_CHUNK", 3)
    for _ in range(7):
        make_ticket(customer, product, due_in=LATE)

    assert tasks.check_sla_breaches() == {"breaches_found": 7}


def test_the_clock_of_the_process_decides_no_breach(customer, product, monkeypatch):
    make_ticket(customer, product, due_in=timedelta(minutes=1))
    tomorrow = timezone.now() + timedelta(days=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: tomorrow)

    assert tasks.check_sla_breaches() == {"breaches_found": 0}


def test_a_breach_that_cannot_be_promised_is_not_recorded(customer, product, settings):
    make_ticket(customer, product, due_in=LATE)
    settings.TASKS = {}

    with pytest.raises(ValueError, match="TASKS"):
        tasks.check_sla_breaches()

    assert Ticket.objects.get().sla_breached_at is None


@pytest.mark.django_db(transaction=True)
def test_a_deadline_moved_during_the_scan_is_no_breach(admin, customer, product):
    ticket = make_ticket(customer, product, priority="critical", age=timedelta(hours=5), due_in=LATE)
    found = []

    def scan():
        try:
            found.append(tasks.check_sla_breaches()["breaches_found"])
        finally:
            connections.close_all()

    with transaction.atomic():
        actions.change_priority(admin, ticket.pk, "low")
        thread = threading.Thread(target=scan)
        thread.start()
        thread.join(20)

    assert [*found, tasks.check_sla_breaches()["breaches_found"]] == [0, 0]


@pytest.mark.django_db(databases=["default", "jobs"], transaction=True)
def test_eight_clusters_that_scan_at_once_find_each_breach_once(customer, product, monkeypatch):
    monkeypatch.setattr(tasks, "SCAN_CHUNK", 5)
    for _ in range(40):
        make_ticket(customer, product, due_in=LATE)

    found = at_once(lambda _: tasks.check_sla_breaches()["breaches_found"], range(8))

    assert sum(found) == 40
    assert TicketEvent.objects.count() == OutboxEntry.objects.filter(task="publish_sla_breached").count() == 40


def test_the_report_counts_seven_days(published, customer, product):
    day = timedelta(days=1)
    now = timezone.now()
    make_ticket(customer, product, age=6 * day)
    make_ticket(customer, product, status="in_progress", age=8 * day)
    make_ticket(customer, product, status="resolved", age=2 * day, resolved_at=now - day)
    make_ticket(customer, product, status="closed", age=9 * day, resolved_at=now - 6 * day)
    make_ticket(customer, product, status="closed", age=30 * day, resolved_at=now - 8 * day)

    result = tasks.generate_activity_report()

    perform_promised()
    [(event_type, payload, _)] = published
    assert result == {"reports_generated": 1}
    assert event_type == "report.weekly_ready"
    assert payload == {
        "product_id": product.pk,
        "product_name": "Shop",
        "period": "7d",
        "stats": {
            "open_count": 1,
            "in_progress_count": 1,
            "resolved_count": 1,
            "created_last_7d": 2,
            "resolved_last_7d": 2,
            "avg_resolution_hours": 48.0,
        },
    }


def test_a_report_of_a_quiet_week_has_no_average(published, product):
    tasks.generate_activity_report()

    perform_promised()
    assert published[0][1]["stats"]["avg_resolution_hours"] is None


def test_the_report_of_a_week_is_promised_once(product):
    tasks.generate_activity_report()

    assert tasks.generate_activity_report() == {"reports_generated": 0}


def test_every_active_product_is_reported_in_one_statement(product, django_assert_num_queries):
    make_product("Other")
    make_product("Retired", is_active=False)

    tasks.generate_activity_report(product.pk)  # what is asked once for all is asked here

    with django_assert_num_queries(4):  # savepoint, figures, outbox, savepoint
        result = tasks.generate_activity_report()

    assert result == {"reports_generated": 1}


def test_a_report_may_be_asked_for_one_product(product):
    other = make_product("Other")

    tasks.generate_activity_report(other.pk)

    assert [entry.args[0]["product_id"] for entry in OutboxEntry.objects.all()] == [other.pk]


def test_a_report_of_no_product_says_so():
    assert tasks.generate_activity_report(4711) == {"reports_generated": 0, "skipped": "product not found"}


def test_a_deadline_that_comes_back_with_its_priority_is_not_recorded_again(admin, customer, product):
    ticket = make_ticket(customer, product, priority="critical", age=timedelta(hours=5), due_in=timedelta(hours=-1))
    tasks.check_sla_breaches()
    actions.change_priority(admin, ticket.pk, "low")

    actions.change_priority(admin, ticket.pk, "critical")

    assert tasks.check_sla_breaches() == {"breaches_found": 0}
    assert TicketEvent.objects.filter(type=TicketEvent.Type.SLA_BREACHED).count() == 1

import psycopg
import pytest
from django.db import connection

from stega.models import OutboxEntry
from stega.pgque.publishing import event_key
from tests.support import servers
from tickets import actions
from tickets.models import Ticket

pytestmark = pytest.mark.django_db


def test_opening_sets_the_deadline_of_the_product(customer, product):
    product.sla_critical_minutes = 1
    product.save()

    ticket = actions.open_ticket(customer, product, "Down", "All of it", "critical")

    assert (ticket.sla_due_at - ticket.created_at).total_seconds() == 60


def test_opening_is_recorded_and_promised_once(customer, product):
    ticket = actions.open_ticket(customer, product, "Down", "All of it", "critical")

    event = ticket.events.get()
    entry = OutboxEntry.objects.get()
    assert (event.type, event.actor, event.payload) == ("created", customer, {"title": "Down", "priority": "critical"})
    assert (entry.task, entry.args) == ("publish_ticket_created", [event.pk])
    assert entry.key == event_key("ticket.created", event.pk)


@pytest.mark.django_db(transaction=True)
def test_a_product_that_is_deleted_while_its_ticket_is_opened_takes_none(customer, product, monkeypatch):
    """PostgreSQL notices that as the transaction ends."""

    def delete(*args):
        with psycopg.connect(servers.app.url(connection.settings_dict["NAME"]), autocommit=True) as other:
            other.execute("delete from tickets_product where id = %s", [product.pk])

    monkeypatch.setattr(actions, "_tell", delete)

    with pytest.raises(actions.Retired):
        actions.open_ticket(customer, product, "Down", "All of it", "critical")

    assert not Ticket.objects.exists()


def test_a_product_that_is_gone_takes_no_tickets(customer, product):
    number = product.pk
    product.delete()
    product.pk = number

    with pytest.raises(actions.Retired):
        actions.open_ticket(customer, product, "Down", "All of it", "critical")


def test_an_inactive_product_takes_no_tickets(customer, product):
    product.is_active = False
    product.save()

    with pytest.raises(actions.Conflict):
        actions.open_ticket(customer, product, "Down", "All of it", "critical")

    assert not Ticket.objects.exists()


def test_a_change_that_cannot_be_promised_is_not_made(customer, product, settings):
    settings.TASKS = {}

    with pytest.raises(ValueError, match="TASKS"):
        actions.open_ticket(customer, product, "Down", "All of it", "critical")

    assert not Ticket.objects.exists()

"""tickets/actions.py: each write is one transaction with its history and what it promises to tell."""

import threading
import uuid

import psycopg
import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection, connections, transaction

from accounts.models import User
from accounts.roles import Role
from stega.models import OutboxEntry
from stega.pgque.publishing import event_key
from tests.factories import make_ticket, make_user
from tests.support import servers
from tests.support.waiting import wait_until
from tickets import actions
from tickets.models import Comment, Product, Ticket, TicketEvent

pytestmark = pytest.mark.django_db


@pytest.fixture
def ticket(customer, product):
    return make_ticket(customer, product)


def promised():
    """The tasks in the outbox and the lines of the history they are about."""
    return [(entry.task, entry.args) for entry in OutboxEntry.objects.order_by("pk")]


def history(ticket):
    return [(event.type, event.actor_id, event.payload) for event in ticket.events.all()]


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


def test_what_a_form_sent_again_asks_for_is_done_and_promised_once(agent, customer, product):
    key = uuid.uuid4()

    opened = {
        actions.open_ticket(customer, product, "Down", "All of it", "critical", form_key=key).pk for _time in range(2)
    }
    added = {actions.comment(customer, min(opened), "Since Tuesday", form_key=key).pk for _time in range(2)}

    assert (len(opened), len(added)) == (1, 1)
    assert [task for task, _args in promised()] == ["publish_ticket_created", "publish_ticket_comment_added"]
    assert [type for type, _actor, _payload in history(Ticket.objects.get())] == ["created", "comment_added"]


def archive(ticket):
    Product.objects.update(is_active=False)


def close(ticket):
    Ticket.objects.update(status="closed")


def give_away(ticket):
    ticket.assignee = make_user("another", Role.AGENT)
    ticket.save()


def demote(ticket):
    User.objects.filter(role=Role.AGENT).update(role=Role.CUSTOMER)


@pytest.mark.parametrize("meanwhile", [archive, close, give_away, demote])
def test_a_form_sent_again_gets_the_first_answer_whatever_came_in_between(agent, product, meanwhile):
    key = uuid.uuid4()
    opened = actions.open_ticket(agent, product, "Down", "All of it", "critical", form_key=key)
    added = actions.comment(agent, opened.pk, "Since Tuesday", internal=True, form_key=key)
    meanwhile(Ticket.objects.get())
    agent.refresh_from_db()

    again = actions.open_ticket(agent, product, "Down", "All of it", "critical", form_key=key)
    said_again = actions.comment(agent, opened.pk, "Since Tuesday", internal=True, form_key=key)

    assert (again, said_again) == (opened, added)


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


def test_an_agent_who_is_gone_is_given_nothing(admin, agent, ticket):
    number = agent.pk
    agent.delete()
    agent.pk = number

    with pytest.raises(actions.Conflict):
        actions.assign(admin, ticket.pk, agent)


def test_a_form_that_says_something_else_when_it_is_sent_again_is_another(agent, customer, product):
    key = uuid.uuid4()

    for words in ("Down", "Down, and the door is locked"):
        ticket = actions.open_ticket(customer, product, words, "All of it", "critical", form_key=key)
        actions.comment(customer, ticket.pk, words, form_key=key)
    actions.comment(customer, ticket.pk, "Down", form_key=key)

    assert list(Ticket.objects.order_by("pk").values_list("title", flat=True)) == [
        "Down",
        "Down, and the door is locked",
    ]
    assert list(ticket.comments.order_by("pk").values_list("body", flat=True)) == [
        "Down, and the door is locked",
        "Down",
    ]


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


def test_an_agent_takes_a_ticket(agent, ticket):
    actions.take(agent, ticket.pk)

    ticket.refresh_from_db()
    assert ticket.assignee == agent
    assert promised() == [("publish_ticket_assigned", [ticket.events.get().pk])]


def test_who_comes_later_does_not_learn_who_was_first(agent, other_agent, ticket):
    actions.take(agent, ticket.pk)

    with pytest.raises(Ticket.DoesNotExist):
        actions.take(other_agent, ticket.pk)


def test_taking_ones_own_ticket_again_changes_nothing(agent, ticket):
    actions.take(agent, ticket.pk)

    actions.take(agent, ticket.pk)

    assert len(promised()) == 1


def test_a_customer_cannot_take_a_ticket(customer, ticket):
    with pytest.raises(PermissionDenied):
        actions.take(customer, ticket.pk)


def test_an_outsider_learns_nothing_from_taking(outsider, ticket):
    with pytest.raises(Ticket.DoesNotExist):
        actions.take(outsider, ticket.pk)


def test_an_agent_hands_their_ticket_over(agent, other_agent, customer, product):
    ticket = make_ticket(customer, product, assignee=agent)

    actions.assign(agent, ticket.pk, other_agent)

    [(type_, actor_id, payload)] = history(ticket)
    assert (type_, actor_id) == ("assigned", agent.pk)
    assert (payload["previous_id"], payload["assignee_id"]) == (agent.pk, other_agent.pk)


def test_who_handed_a_ticket_over_still_sees_it(agent, other_agent, customer, product):
    ticket = make_ticket(customer, product, assignee=agent)

    actions.assign(agent, ticket.pk, other_agent)

    assert ticket in Ticket.objects.visible_to(agent)


def test_an_agent_cannot_hand_over_what_is_not_theirs(agent, other_agent, ticket):
    with pytest.raises(actions.NotAssigned):
        actions.assign(agent, ticket.pk, other_agent)


def test_an_agent_cannot_change_the_status_of_what_is_not_theirs(agent, ticket):
    with pytest.raises(actions.NotAssigned):
        actions.change_status(agent, ticket.pk, "waiting")


@pytest.mark.parametrize("status", ["open", "closed"])
def test_an_agent_can_never_leave_a_ticket_to_nobody(agent, customer, product, status):
    ticket = make_ticket(customer, product, assignee=agent, status=status)

    with pytest.raises(PermissionDenied):
        actions.assign(agent, ticket.pk, None)


def test_nobody_is_told_that_nobody_is_assigned(admin, agent, customer, product):
    ticket = make_ticket(customer, product, assignee=agent)

    actions.assign(admin, ticket.pk, None)

    assert promised() == []
    assert history(ticket)[0][2]["assignee_id"] is None


def test_only_an_agent_can_be_the_assignee(admin, customer, ticket):
    with pytest.raises(actions.Conflict):
        actions.assign(admin, ticket.pk, customer)


def test_a_closed_ticket_keeps_its_assignee(admin, agent, customer, product):
    ticket = make_ticket(customer, product, status="closed")

    with pytest.raises(actions.Closed):
        actions.assign(admin, ticket.pk, agent)


def test_resolving_is_told_as_resolved_and_not_as_a_change_of_status(admin, ticket):
    actions.change_status(admin, ticket.pk, "resolved")

    assert [task for task, _ in promised()] == ["publish_ticket_resolved"]


def test_any_other_change_of_status_is_told_as_such(admin, ticket):
    actions.change_status(admin, ticket.pk, "waiting")

    assert promised() == [("publish_ticket_status_changed", [ticket.events.get().pk])]
    assert history(ticket)[0][2] == {"old_status": "open", "new_status": "waiting"}


def test_closing_a_resolved_ticket_keeps_its_resolution_date(admin, ticket):
    resolved = actions.change_status(admin, ticket.pk, "resolved").resolved_at

    closed = actions.change_status(admin, ticket.pk, "closed")

    assert closed.resolved_at == resolved is not None


def test_the_same_status_again_changes_nothing(admin, ticket):
    actions.change_status(admin, ticket.pk, "open")

    assert (history(ticket), promised()) == ([], [])


def test_the_workflow_is_kept(admin, customer, product):
    ticket = make_ticket(customer, product, status="closed")

    with pytest.raises(actions.Conflict, match="Closed"):
        actions.change_status(admin, ticket.pk, "resolved")


def test_a_customer_cannot_change_the_status(customer, ticket):
    with pytest.raises(PermissionDenied):
        actions.change_status(customer, ticket.pk, "resolved")


def test_a_higher_priority_brings_the_deadline_forward(agent, ticket):
    actions.change_priority(agent, ticket.pk, "critical")

    ticket.refresh_from_db()
    assert (ticket.sla_due_at - ticket.created_at).total_seconds() == 4 * 3600
    assert history(ticket)[0][0] == "priority_changed"


def test_a_deadline_that_lies_ahead_again_may_be_missed_again(agent, customer, product, ticket):
    Ticket.objects.filter(pk=ticket.pk).update(sla_breached_at=ticket.created_at)

    actions.change_priority(agent, ticket.pk, "low")

    ticket.refresh_from_db()
    assert ticket.sla_breached_at is None


def test_a_customer_cannot_change_the_priority(customer, ticket):
    with pytest.raises(PermissionDenied):
        actions.change_priority(customer, ticket.pk, "critical")


def test_a_public_comment_is_told(customer, ticket):
    comment = actions.comment(customer, ticket.pk, "Still broken")

    event = ticket.events.get()
    assert event.payload == {"comment_id": comment.pk, "is_internal": False}
    assert promised() == [("publish_ticket_comment_added", [event.pk])]


def test_an_internal_comment_is_told_to_nobody(agent, ticket):
    actions.comment(agent, ticket.pk, "Odd one", internal=True)

    assert promised() == []


def test_a_customer_cannot_comment_internally(customer, ticket):
    with pytest.raises(PermissionDenied):
        actions.comment(customer, ticket.pk, "Odd one", internal=True)


def test_a_closed_ticket_takes_no_comments(customer, product):
    ticket = make_ticket(customer, product, status="closed")

    with pytest.raises(actions.Closed):
        actions.comment(customer, ticket.pk, "One more thing")

    assert not Comment.objects.exists()


@pytest.mark.parametrize("action", ["change_status", "change_priority", "comment"])
def test_a_foreign_ticket_does_not_exist(outsider, ticket, action):
    with pytest.raises(Ticket.DoesNotExist):
        getattr(actions, action)(outsider, ticket.pk, "open")


@pytest.mark.django_db(databases=["default", "jobs"], transaction=True)
def test_of_two_agents_who_take_a_ticket_at_once_one_gets_it_and_the_other_is_told_so(agent, other_agent, ticket):
    told = []

    def take():
        try:
            actions.take(other_agent, ticket.pk)
        except actions.Conflict as conflict:
            told.append(str(conflict))
        finally:
            connections.close_all()

    second = threading.Thread(target=take)
    with transaction.atomic():
        actions.take(agent, ticket.pk)
        second.start()
        wait_until(somebody_waits_for_a_lock, timeout=20)
    second.join(20)

    ticket.refresh_from_db()
    assert (ticket.assignee, told) == (agent, ["Agent has taken this ticket."])
    assert TicketEvent.objects.filter(ticket=ticket, type="assigned").count() == 1


@pytest.mark.django_db(databases=["default", "jobs"], transaction=True)
def test_of_a_form_that_arrives_twice_at_once_one_ticket_comes(customer, product):
    key, numbers = uuid.uuid4(), []

    def send():
        numbers.append(actions.open_ticket(customer, product, "Down", "All of it", "critical", form_key=key).pk)

    def send_again():
        try:
            send()
        finally:
            connections.close_all()

    second = threading.Thread(target=send_again)
    with transaction.atomic():
        send()
        second.start()
        wait_until(somebody_waits_for_a_lock, timeout=20)
    second.join(20)

    assert numbers == [Ticket.objects.get().pk] * 2


def somebody_waits_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute("select exists (select from pg_locks where not granted)")
        return cursor.fetchone()[0]

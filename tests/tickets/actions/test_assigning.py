import threading

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connections, transaction

from tests.factories import make_ticket
from tests.support.waiting import wait_until
from tests.tickets.actions.written import history, promised, somebody_waits_for_a_lock
from tickets import actions
from tickets.models import Ticket, TicketEvent

pytestmark = pytest.mark.django_db


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


def test_an_agent_who_is_gone_is_given_nothing(admin, agent, ticket):
    number = agent.pk
    agent.delete()
    agent.pk = number

    with pytest.raises(actions.Conflict):
        actions.assign(admin, ticket.pk, agent)


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

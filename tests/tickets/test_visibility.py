"""TicketQuerySet.visible_to(): the one place that says who sees which ticket."""

import pytest

from tests.factories import make_ticket
from tickets.models import Ticket

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("who", "seen"),
    [
        ("customer", {"unassigned", "agent's", "once agent's"}),
        ("outsider", {"outsider's own"}),
        ("agent", {"unassigned", "agent's", "once agent's"}),
        ("other_agent", {"unassigned", "once agent's", "outsider's own"}),
        ("admin", {"unassigned", "agent's", "once agent's", "outsider's own"}),
    ],
)
def test_who_sees_which_ticket(who, seen, request, customer, outsider, agent, other_agent, admin, product):
    make_ticket(customer, product, title="unassigned")
    make_ticket(customer, product, title="agent's", assignee=agent)
    make_ticket(customer, product, title="once agent's", assignee=other_agent).assignees.add(agent)
    make_ticket(outsider, product, title="outsider's own", assignee=other_agent)

    visible = Ticket.objects.visible_to(request.getfixturevalue(who))

    assert {ticket.title for ticket in visible} == seen


@pytest.mark.parametrize("who", ["customer", "agent", "admin"])
def test_a_deactivated_person_sees_nothing(who, request, customer, product):
    make_ticket(customer, product)
    person = request.getfixturevalue(who)
    person.is_active = False

    assert not Ticket.objects.visible_to(person)

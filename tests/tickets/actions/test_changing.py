import pytest
from django.core.exceptions import PermissionDenied

from tests.factories import make_ticket
from tests.tickets.actions.written import history, promised
from tickets import actions
from tickets.models import Comment, Ticket

pytestmark = pytest.mark.django_db


def test_an_agent_cannot_change_the_status_of_what_is_not_theirs(agent, ticket):
    with pytest.raises(actions.NotAssigned):
        actions.change_status(agent, ticket.pk, "waiting")


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

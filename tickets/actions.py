"""The writes of the help desk. Each is one transaction on `default`: the change, its line in the history and the outbox
entries that tell people stand or fall together.

Every action takes the person who acts and refuses what their role never allows with PermissionDenied. A ticket that
person may not see does not exist: Ticket.DoesNotExist. What the state of the ticket does not allow, its assignment
included, is a Conflict, whose text is for that person's eyes.
"""

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.db import IntegrityError, connection, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from stega import outbox
from stega.pgque.publishing import event_key
from tickets import policy, sla, workflow
from tickets.models import Comment, Product, Ticket, TicketEvent
from tickets.sla import Priority
from tickets.workflow import Status

Written = TypeVar("Written", Ticket, Comment)


class Conflict(Exception):
    """The ticket is not in a state that allows this. The text says why."""


class Closed(Conflict):
    def __init__(self) -> None:
        super().__init__(_("This ticket is closed."))


class Retired(Conflict):
    def __init__(self) -> None:
        super().__init__(_("This product takes no new tickets."))


class NotAssigned(Conflict):
    def __init__(self) -> None:
        super().__init__(_("This ticket is not assigned to you."))


def open_ticket(
    author: User, product: Product, title: str, body: str, priority: str, *, form_key: uuid.UUID | None = None
) -> Ticket:
    """Open a ticket by its author; publishes `ticket.created`. Raises Conflict when the product takes no tickets.

    A form that its author sends again opens nothing: the ticket of the first time is returned, whatever has become of
    the product since. One that says something else by now is another.
    """
    key = _key(form_key, product.pk, title, body, priority)
    try:
        return _once(Ticket, author, key, lambda: _open(author, product.pk, title, body, priority, key))
    except IntegrityError:
        if Product.objects.filter(pk=product.pk).exists():
            raise
        raise Retired from None


def _key(form_key: uuid.UUID | None, *said: Any) -> uuid.UUID | None:
    """The key of a form with what it says."""
    return form_key and uuid.uuid5(form_key, repr(said))


def _once(model: type[Written], author: User, key: uuid.UUID | None, write: Callable[[], Written]) -> Written:
    """What `write` writes; if that is refused, and the author's form wrote it before, what it wrote then."""
    try:
        return write()
    except (IntegrityError, Conflict, ObjectDoesNotExist, PermissionDenied):
        made = model.objects.filter(author=author, form_key=key).first() if key else None
        if made is None:
            raise
        return made


def _open(author: User, product_id: int, title: str, body: str, priority: str, form_key: uuid.UUID | None) -> Ticket:
    with transaction.atomic(using="default"):
        product = Product.objects.filter(pk=product_id, is_active=True).first()
        if product is None:
            raise Retired
        now = database_now()
        ticket = Ticket.objects.create(
            author=author,
            product=product,
            title=title,
            body=body,
            priority=Priority(priority),
            sla_due_at=sla.due_at(now, priority, product.sla_policy),
            created_at=now,
            updated_at=now,
            form_key=form_key,
        )
        event = _record(ticket, TicketEvent.Type.CREATED, author, now, {"title": title, "priority": ticket.priority})
        _tell("ticket.created", "publish_ticket_created", event)
    return ticket


def take(agent: User, ticket_id: int) -> Ticket:
    """Let an agent have a ticket that nobody has; publishes `ticket.assigned`.

    Of two agents who take it at once the row lock lets one through. The other, who sees the ticket until then, gets a
    Conflict that names the first; who asks later learns nothing about a ticket that is another's.
    """
    with transaction.atomic(using="default"):
        ticket = _lock_visible(agent, ticket_id)
        if not policy.may_be_assignee(agent):
            raise PermissionDenied
        if ticket.assignee_id == agent.pk:
            return ticket
        if ticket.assignee is not None:
            raise Conflict(_("%(name)s has taken this ticket.") % {"name": ticket.assignee})
        if not policy.may_take(agent, ticket):
            raise Closed
        _give(agent, ticket, agent)
    return ticket


def assign(actor: User, ticket_id: int, assignee: User | None) -> Ticket:
    """Give the ticket to an agent, or to nobody; publishes `ticket.assigned` when somebody new has it."""
    with transaction.atomic(using="default"):
        ticket = _lock_visible(actor, ticket_id)
        if not policy.is_staff(actor) or (assignee is None and not policy.may_ever_unassign(actor)):
            raise PermissionDenied
        if ticket.status == Status.CLOSED:
            raise Closed
        if assignee == ticket.assignee:
            return ticket
        if not policy.may_hand_over(actor, ticket):
            raise NotAssigned
        _give(actor, ticket, _as_assignee(assignee))
    return ticket


def change_status(actor: User, ticket_id: int, new: str) -> Ticket:
    """Move the ticket along the workflow; publishes `ticket.resolved`, or `ticket.status_changed` for any other move.

    Raises Conflict when the workflow has no such move; the same status again changes nothing.
    """
    with transaction.atomic(using="default"):
        ticket = _lock_visible(actor, ticket_id)
        if not policy.is_staff(actor):
            raise PermissionDenied
        if not policy.may_change_status(actor, ticket, new):
            raise Closed if ticket.status == Status.CLOSED else NotAssigned
        old = ticket.status
        if new == old:
            return ticket
        if not workflow.may_follow(old, new):
            raise Conflict(_("A ticket cannot go from “%(old)s” to “%(new)s”.") % _labels(old, new))
        now = database_now()
        ticket.status = Status(new)
        ticket.resolved_at = workflow.resolved_at_after(new, ticket.resolved_at, now)
        _save(ticket, now, "status", "resolved_at")
        payload = {"old_status": old, "new_status": ticket.status}
        event = _record(ticket, TicketEvent.Type.STATUS_CHANGED, actor, now, payload)
        if new == Status.RESOLVED:
            _tell("ticket.resolved", "publish_ticket_resolved", event)
        else:
            _tell("ticket.status_changed", "publish_ticket_status_changed", event)
    return ticket


def change_priority(actor: User, ticket_id: int, new: str) -> Ticket:
    """Set the priority and the deadline that follows from it; tells nobody. The same priority again changes nothing."""
    with transaction.atomic(using="default"):
        ticket = _lock_visible(actor, ticket_id)
        if not policy.is_staff(actor):
            raise PermissionDenied
        if not policy.may_change_priority(actor, ticket):
            raise Closed
        old = ticket.priority
        if new == old:
            return ticket
        now = database_now()
        ticket.priority = Priority(new)
        ticket.sla_due_at = sla.due_at(ticket.created_at, new, ticket.product.sla_policy)
        breached_at = ticket.breach_recorded_at(ticket.sla_due_at) or ticket.sla_breached_at
        ticket.sla_breached_at = sla.breached_at_after(ticket.sla_due_at, breached_at, now)
        _save(ticket, now, "priority", "sla_due_at", "sla_breached_at")
        payload = {"old_priority": old, "new_priority": ticket.priority, "sla_due_at": ticket.sla_due_at.isoformat()}
        _record(ticket, TicketEvent.Type.PRIORITY_CHANGED, actor, now, payload)
    return ticket


def comment(
    author: User, ticket_id: int, body: str, *, internal: bool = False, form_key: uuid.UUID | None = None
) -> Comment:
    """Add a comment; publishes `ticket.comment_added` for a public one. Raises Closed on a closed ticket.

    A form that its author sends again adds nothing: the comment of the first time is returned, whatever has become of
    the ticket since, and of its author's right to see it. One that says something else by now is another.
    """
    key = _key(form_key, ticket_id, body, internal)
    return _once(Comment, author, key, lambda: _comment(author, ticket_id, body, internal, key))


def _comment(author: User, ticket_id: int, body: str, internal: bool, form_key: uuid.UUID | None) -> Comment:
    with transaction.atomic(using="default"):
        ticket = _lock_visible(author, ticket_id)
        if not policy.may_comment(author, ticket):
            raise Closed
        if internal and not policy.may_comment_internally(author, ticket):
            raise PermissionDenied
        now = database_now()
        added = Comment.objects.create(
            ticket=ticket, author=author, body=body, is_internal=internal, created_at=now, form_key=form_key
        )
        _save(ticket, now)
        payload = {"comment_id": added.pk, "is_internal": internal}
        event = _record(ticket, TicketEvent.Type.COMMENT_ADDED, author, now, payload)
        if not internal:
            _tell("ticket.comment_added", "publish_ticket_comment_added", event)
    return added


def database_now() -> datetime:
    """The start of this transaction by the clock of the database, which also decides breaches."""
    with connection.cursor() as cursor:
        cursor.execute("select now()")
        now: datetime = cursor.fetchone()[0]
    return now


def _lock_visible(actor: User, ticket_id: int) -> Ticket:
    return _lock(Ticket.objects.visible_to(actor).values_list("pk", flat=True).get(pk=ticket_id))


def _lock(ticket_id: int) -> Ticket:
    """The ticket, locked until the end of this transaction, as the transaction before left it.

    Without joins: after a wait for the lock PostgreSQL reads this row again, but not the rows joined to it.
    """
    return Ticket.objects.select_for_update().get(pk=ticket_id)


def _give(actor: User, ticket: Ticket, assignee: User | None) -> None:
    now = database_now()
    payload = _assignment(assignee, ticket.assignee)
    ticket.assignee = assignee
    _save(ticket, now, "assignee")
    event = _record(ticket, TicketEvent.Type.ASSIGNED, actor, now, payload)
    if assignee is not None:
        ticket.assignees.add(assignee)
        _tell("ticket.assigned", "publish_ticket_assigned", event)


def _as_assignee(person: User | None) -> User | None:
    """The person as they are at this moment; a Conflict when that is nobody whom a ticket can be given to."""
    if person is None:
        return None
    present = User.objects.filter(pk=person.pk).first()
    if present is None or not policy.may_be_assignee(present):
        raise Conflict(_("Only an active agent can be the assignee."))
    return present


def _assignment(assignee: User | None, previous: User | None) -> dict[str, Any]:
    """Names as they are at this moment: the history keeps them when a person is renamed."""
    return {
        "assignee_id": assignee.pk if assignee else None,
        "assignee_name": str(assignee) if assignee else None,
        "previous_id": previous.pk if previous else None,
        "previous_name": str(previous) if previous else None,
    }


def _labels(old: str, new: str) -> dict[str, str]:
    return {"old": str(Status(old).label), "new": str(Status(new).label)}


def _save(ticket: Ticket, now: datetime, *fields: str) -> None:
    ticket.updated_at = now
    ticket.save(update_fields=[*fields, "updated_at"])


def _record(ticket: Ticket, type_: str, actor: User, now: datetime, payload: dict[str, Any]) -> TicketEvent:
    return TicketEvent.objects.create(ticket=ticket, type=type_, actor=actor, created_at=now, payload=payload)


def _tell(event_type: str, task: str, event: TicketEvent) -> None:
    """Enqueue the publication of a line of the history; its number makes the key, so it is told once."""
    outbox.enqueue(task, event.pk, key=event_key(event_type, event.pk))

"""Who may do what to a ticket they can see. Seeing is TicketQuerySet.visible_to()."""

from typing import Protocol

from accounts.roles import Role
from tickets.workflow import Status


class Person(Protocol):
    @property
    def pk(self) -> int: ...
    @property
    def role(self) -> str: ...
    @property
    def is_active(self) -> bool: ...


class TicketState(Protocol):
    @property
    def status(self) -> str: ...
    @property
    def assignee_id(self) -> int | None: ...


def is_staff(person: Person) -> bool:
    """Agents and admins work on tickets; customers open them."""
    return person.role in (Role.AGENT, Role.ADMIN)


def may_see_internal(person: Person) -> bool:
    return is_staff(person)


def may_comment(person: Person, ticket: TicketState) -> bool:
    return ticket.status != Status.CLOSED


def may_comment_internally(person: Person, ticket: TicketState) -> bool:
    return is_staff(person) and may_comment(person, ticket)


def may_change_priority(person: Person, ticket: TicketState) -> bool:
    return is_staff(person) and ticket.status != Status.CLOSED


def may_change_status(person: Person, ticket: TicketState, new: str) -> bool:
    """Admins always; agents on the tickets assigned to them, except that only an admin reopens a closed one."""
    if person.role == Role.ADMIN:
        return True
    return person.role == Role.AGENT and ticket.assignee_id == person.pk and ticket.status != Status.CLOSED


def may_take(person: Person, ticket: TicketState) -> bool:
    """An agent takes a ticket that nobody has."""
    return person.role == Role.AGENT and ticket.assignee_id is None and ticket.status != Status.CLOSED


def may_hand_over(person: Person, ticket: TicketState) -> bool:
    """Choose another assignee: an admin for any ticket, an agent for their own."""
    if ticket.status == Status.CLOSED:
        return False
    return person.role == Role.ADMIN or (person.role == Role.AGENT and ticket.assignee_id == person.pk)


def may_ever_unassign(person: Person) -> bool:
    return person.role == Role.ADMIN


def may_unassign(person: Person, ticket: TicketState) -> bool:
    return may_ever_unassign(person) and ticket.assignee_id is not None and ticket.status != Status.CLOSED


def may_be_assignee(person: Person) -> bool:
    return person.is_active and person.role == Role.AGENT

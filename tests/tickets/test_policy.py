from dataclasses import dataclass

import pytest

from tickets import policy


@dataclass(frozen=True)
class Person:
    role: str
    pk: int
    is_active: bool = True


@dataclass(frozen=True)
class State:
    status: str = "open"
    assignee_id: int | None = None


CUSTOMER, AGENT, ADMIN = Person("customer", 1), Person("agent", 2), Person("admin", 3)
UNASSIGNED = State()
MINE = State(assignee_id=AGENT.pk)
THEIRS = State(assignee_id=9)
CLOSED = State(status="closed", assignee_id=AGENT.pk)

ROWS = [
    # what, person, ticket, expected
    ("comment", CUSTOMER, UNASSIGNED, True),
    ("comment", AGENT, THEIRS, True),
    ("comment", CUSTOMER, CLOSED, False),
    ("comment", ADMIN, CLOSED, False),
    ("comment_internally", CUSTOMER, UNASSIGNED, False),
    ("comment_internally", AGENT, UNASSIGNED, True),
    ("comment_internally", ADMIN, UNASSIGNED, True),
    ("comment_internally", ADMIN, CLOSED, False),
    ("change_priority", CUSTOMER, UNASSIGNED, False),
    ("change_priority", AGENT, THEIRS, True),
    ("change_priority", ADMIN, UNASSIGNED, True),
    ("change_priority", ADMIN, CLOSED, False),
    ("take", CUSTOMER, UNASSIGNED, False),
    ("take", AGENT, UNASSIGNED, True),
    ("take", AGENT, THEIRS, False),
    ("take", AGENT, State(status="closed"), False),
    ("take", ADMIN, UNASSIGNED, False),
    ("hand_over", CUSTOMER, UNASSIGNED, False),
    ("hand_over", AGENT, UNASSIGNED, False),
    ("hand_over", AGENT, MINE, True),
    ("hand_over", AGENT, THEIRS, False),
    ("hand_over", AGENT, CLOSED, False),
    ("hand_over", ADMIN, THEIRS, True),
    ("hand_over", ADMIN, CLOSED, False),
    ("unassign", CUSTOMER, MINE, False),
    ("unassign", AGENT, MINE, False),
    ("unassign", ADMIN, MINE, True),
    ("unassign", ADMIN, UNASSIGNED, False),
    ("unassign", ADMIN, CLOSED, False),
]


@pytest.mark.parametrize(("what", "person", "ticket", "expected"), ROWS)
def test_who_may_do_what_to_a_ticket(what, person, ticket, expected):
    assert getattr(policy, f"may_{what}")(person, ticket) is expected


@pytest.mark.parametrize(
    ("person", "ticket", "expected"),
    [
        (CUSTOMER, UNASSIGNED, False),
        (AGENT, UNASSIGNED, False),
        (AGENT, THEIRS, False),
        (AGENT, MINE, True),
        (AGENT, CLOSED, False),
        (ADMIN, UNASSIGNED, True),
        (ADMIN, CLOSED, True),
    ],
)
def test_who_may_change_the_status(person, ticket, expected):
    assert policy.may_change_status(person, ticket, "open") is expected


@pytest.mark.parametrize(("person", "expected"), [(CUSTOMER, False), (AGENT, True), (ADMIN, True)])
def test_agents_and_admins_see_internal_comments(person, expected):
    assert policy.may_see_internal(person) is expected


@pytest.mark.parametrize(
    ("person", "expected"),
    [(CUSTOMER, False), (AGENT, True), (ADMIN, False), (Person("agent", 4, is_active=False), False)],
)
def test_only_an_active_agent_can_be_assignee(person, expected):
    assert policy.may_be_assignee(person) is expected

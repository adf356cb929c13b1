"""Make things for tests: every argument has a sensible default."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from tickets.models import Product, Ticket
from tickets.sla import Priority
from tickets.workflow import Status

PASSWORD = "correct horse"


class QuickHasher(PBKDF2PasswordHasher):
    """What it hashes can also be checked by a process with the settings of production."""

    iterations = 1


_HASH = QuickHasher().encode(PASSWORD, "salt")


def make_user(username: str, role: str = Role.CUSTOMER, **fields: Any) -> User:
    fields = {"email": f"{username}@example.com", "display_name": username.capitalize(), **fields}
    return User.objects.create(username=username, role=role, password=_HASH, **fields)


def make_product(name: str = "Shop", **fields: Any) -> Product:
    return Product.objects.create(name=name, slug=name.lower().replace(" ", "-"), **fields)


def make_ticket(
    author: User,
    product: Product,
    *,
    title: str = "It is broken",
    body: str = "It does nothing.",
    status: str = Status.OPEN,
    priority: str = Priority.MEDIUM,
    assignee: User | None = None,
    age: timedelta = timedelta(),
    due_in: timedelta = timedelta(hours=4),
    **fields: Any,
) -> Ticket:
    """A ticket as it is some time after its opening, without the history that led there."""
    now = timezone.now()
    ticket = Ticket.objects.create(
        author=author,
        product=product,
        title=title,
        body=body,
        status=Status(status).value,
        priority=Priority(priority).value,
        assignee=assignee,
        **{"created_at": now - age, "updated_at": now - age, "sla_due_at": now + due_in, **fields},
    )
    if assignee:
        ticket.assignees.add(assignee)
    return ticket

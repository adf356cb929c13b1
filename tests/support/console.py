"""What the console is looked at with: people with and without rights in it, and rows of each kind."""

import uuid

from django.contrib.auth.models import Permission
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from notifications.models import Delivery, State
from notifications.notice import Channel
from operations import sampling
from operations.models import Kind, OperatorAction
from stega.models import OutboxEntry
from stega.pgque import client
from stega.tasks import schedules
from tests.factories import make_ticket, make_user
from tests.support.event_log import tick
from tests.support.letters import bury
from tickets.models import Product, Ticket

WORKER = "notification_worker"


def staff(username: str, *codenames: str) -> User:
    user = make_user(username, Role.ADMIN, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="operations", codename__in=codenames))
    return user


def letters_of_three_causes(queue: str) -> dict[str, list[int]]:
    """500 dead letters left by one consumer; the ids by cause."""
    return {
        "unknown": bury(queue, WORKER, "email to user:%s given up: <u%s@example.com> unknown", count=300),
        "bad": bury(queue, WORKER, "bad payload: ticket.welcome lacks email", count=150),
        "type": bury(queue, WORKER, "unknown event type 'x.y'", count=50, event_type="x.y"),
    }


def row_of_each_kind(queue: str, author: User, product: Product, operator: User) -> Ticket:
    """A schedule, a member, a retry, a sample, an outbox entry, a delivery, an action; the ticket they are about."""
    schedules.install()
    client.subscribe_subconsumer(queue, "workers", "one")
    client.insert_event(queue, "ticket.welcome", {}, str(uuid.uuid4()))
    tick(queue)
    batch = client.next_batch(queue, WORKER)
    assert batch is not None
    for event in client.batch_events(batch, 10):
        client.event_retry(batch, event.id, 600)
    client.ack(batch)
    sampling.take()
    OutboxEntry.objects.create(key=uuid.uuid4(), task="send_welcome_notification", args=[1], failed_at=timezone.now())
    ticket = make_ticket(author, product)
    Delivery.objects.create(
        event_key=uuid.uuid4(),
        event_type="ticket.assigned",
        ticket_id=ticket.pk,
        channel=Channel.EMAIL,
        recipient=f"user:{author.pk}",
        address=author.email,
        state=State.FAILED,
        reason="Unknown mailbox",
    )
    OperatorAction.objects.create(kind=Kind.RUN_SCHEDULE, actor=operator, target={"name": "x"}, count=1, reason="why")
    return ticket

"""Who must be told of what the producer let happen, read from what it left behind after the run."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from accounts.models import User
from accounts.roles import Role
from notifications.channels.email import message_id
from notifications.notice import Channel
from stega.models import OutboxEntry
from tests.chaos.receivers import GONE_HOOK, REFUSED_FOR_EVER, slack_post
from tests.factories import make_product, make_user
from tickets.models import Ticket, TicketEvent

CUSTOMERS, AGENTS, ADMINS, HOOKS = 40, 8, 2, 4

BAD_ARGUMENTS = ["no number"]
"""Of a task that fails whenever it runs."""
UNTELLABLE = ("refused", "unsendable", "inactive")
"""Users whom no mail reaches: the mailbox does not exist, the address is none, the account is inactive."""


def populate(hook: str) -> None:
    """People and products of every kind that the facts need; `hook` is where Slack listens."""
    for role, count in ((Role.CUSTOMER, CUSTOMERS), (Role.AGENT, AGENTS), (Role.ADMIN, ADMINS)):
        for number in range(count):
            make_user(f"{role}-{number}", role)
    make_user("refused", email=f"{REFUSED_FOR_EVER}@example.com")
    make_user("unsendable", email="nobody at all")
    make_user("inactive", is_active=False)
    for number in range(HOOKS):
        make_product(f"Product {number}", slack_webhook_url=f"{hook}/{number}")
    make_product("Gone", slack_webhook_url=f"{hook}/{GONE_HOOK}")


@dataclass
class Promises:
    """What must have become of the facts."""

    facts: int = 0
    told: set[str] = field(default_factory=set)
    """Message-IDs and Slack posts."""
    untold: set[str] = field(default_factory=set)
    """Rows of the ledger that must say that somebody cannot be told."""
    given_up: set[str] = field(default_factory=set)
    """Keys of outbox entries whose task fails by its own fault."""

    def add_mail(self, key: uuid.UUID, user: User) -> None:
        recipient = f"user:{user.pk}"
        if user.username in UNTELLABLE:
            self.untold.add(f"{key} {Channel.EMAIL} {recipient}")
        else:
            self.told.add(message_id(key, recipient))

    def add_post(self, key: uuid.UUID, ticket: Ticket) -> None:
        if ticket.product.slack_webhook_url.endswith(GONE_HOOK):
            self.untold.add(f"{key} {Channel.SLACK} product:{ticket.product_id}")
        else:
            self.told.add(slack_post(ticket.pk))


def promised(welcomes: Iterable[tuple[uuid.UUID, int]]) -> Promises:
    """What the outbox has promised, and the welcomes (key, user) that were published without it."""
    promises = Promises()
    people = {user.pk: user for user in User.objects.all()}
    admins = {user.pk for user in people.values() if user.role == Role.ADMIN}
    events = {event.pk: event for event in TicketEvent.objects.select_related("ticket__product")}
    for key, user_id in welcomes:
        promises.facts += 1
        promises.add_mail(key, people[user_id])
    for entry in OutboxEntry.objects.all():
        promises.facts += 1
        if entry.args == BAD_ARGUMENTS:
            promises.given_up.add(str(entry.key))
            continue
        is_welcome = entry.task == "send_welcome_notification"
        told = {entry.args[0]} if is_welcome else _audience(entry.task, events[entry.args[0]], admins)
        for user_id in told:
            promises.add_mail(entry.key, people[user_id])
        if entry.task == "publish_sla_breached":
            promises.add_post(entry.key, events[entry.args[0]].ticket)
    return promises


def _audience(task: str, event: TicketEvent, admins: set[int]) -> set[int]:
    """Of a ticket that is assigned once at most, as the producer's are."""
    ticket = event.ticket
    return {
        "publish_ticket_created": set[int](),
        "publish_ticket_assigned": {event.payload.get("assignee_id")},
        "publish_ticket_comment_added": {ticket.author_id, ticket.assignee_id} - {event.actor_id},
        "publish_ticket_status_changed": {ticket.author_id},
        "publish_ticket_resolved": {ticket.author_id},
        "publish_sla_breached": admins,
    }[task]

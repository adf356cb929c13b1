"""What a fresh installation shows to somebody who tries it: three people, two products, a few tickets."""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.db import transaction
from django.db.models import F
from django.utils.text import slugify

from accounts.models import User
from accounts.roles import Role
from stega import outbox
from tickets import actions
from tickets.models import Comment, Product, Ticket, TicketEvent
from tickets.sla import Priority
from tickets.workflow import Status

PASSWORD = "demo"
INBOX_PATH = "/dev/inbox/slack/"
PACE = timedelta(minutes=25)
"""Between two steps of a story: slow enough to be believed, fast enough to keep every deadline."""


@dataclass(frozen=True)
class Story:
    """A ticket and what happened to it since."""

    product: str
    title: str
    body: str
    priority: Priority
    age: timedelta
    assigned: bool = False
    note: str = ""
    answer: str = ""
    reply: str = ""
    statuses: tuple[Status, ...] = ()


STORIES = (
    Story(
        "Demo Shop",
        "Invoice PDF shows the wrong address",
        "The invoice of order 10442 still has our old street.\n\nThe address in the account is right.",
        Priority.MEDIUM,
        timedelta(hours=5),
    ),
    Story(
        "Demo Shop",
        "Checkout is slow since this morning",
        "Every step of the checkout takes about ten seconds, with any payment method.",
        Priority.HIGH,
        timedelta(hours=2),
        assigned=True,
        answer="Thank you. We can see it too and are looking at the payment provider.",
        note="The provider's status page shows nothing yet.",
        statuses=(Status.IN_PROGRESS,),
    ),
    Story(
        "Demo Shop",
        "Please add a second delivery address",
        "We would like to send orders to our warehouse without changing the account each time.",
        Priority.LOW,
        timedelta(days=1, hours=4),
    ),
    Story(
        "Demo Shop",
        "Discount code is refused",
        "The code SPRING is refused with “not valid for these articles”.",
        Priority.MEDIUM,
        timedelta(hours=9),
        assigned=True,
        answer="Which articles are in the basket? The code is for garden tools only.",
        statuses=(Status.IN_PROGRESS, Status.WAITING),
    ),
    Story(
        "Demo Shop",
        "Password mail never arrived",
        "I asked for a new password twice. Nothing in the spam folder either.",
        Priority.HIGH,
        timedelta(days=2),
        assigned=True,
        answer="Your provider had us on a list; it does not any more. Please try again.",
        reply="It came, thank you!",
        statuses=(Status.IN_PROGRESS, Status.RESOLVED),
    ),
    Story(
        "Demo Analytics",
        "Export stops at 10,000 rows",
        "The CSV export of the sales report ends after 10,000 rows, without a message.",
        Priority.MEDIUM,
        timedelta(hours=3),
        assigned=True,
    ),
    Story(
        "Demo Analytics",
        "Charts use the wrong time zone",
        "All charts are in UTC although the account is set to São Paulo.",
        Priority.LOW,
        timedelta(hours=30),
    ),
    Story(
        "Demo Analytics",
        "How do I share a dashboard?",
        "I cannot find where to invite a colleague.",
        Priority.LOW,
        timedelta(days=6),
        assigned=True,
        answer="With “Share” at the top right of the dashboard: enter the address of your colleague.",
        statuses=(Status.RESOLVED, Status.CLOSED),
    ),
)


def seed() -> bool:
    """Make what is missing; true when the tickets were. One transaction on `default`. Tells nobody.

    The Slack webhook of Demo Shop follows STEGA_BASE_URL as long as it points at a development inbox.
    """
    with transaction.atomic(using="default"), outbox.silence():
        people = {role: _person(role) for role in Role}
        products = {name: _product(name) for name in ("Demo Shop", "Demo Analytics")}
        _point_at_the_inbox(products["Demo Shop"])
        if Ticket.objects.filter(product__in=products.values()).exists():
            return False
        for story in sorted(STORIES, key=lambda story: story.age, reverse=True):
            _live_through(story, products[story.product], people)
    return True


def people_with_public_passwords() -> list[str]:
    """Who was made by the demo and can still sign in with its password."""
    people = User.objects.filter(username__in=[role.value for role in Role], is_active=True).order_by("username")
    return [person.username for person in people if check_password(PASSWORD, person.password)]


def _person(role: Role) -> User:
    existing = User.objects.filter(username=role.value).first()
    if existing:
        return existing
    return User.objects.create_user(
        role.value,
        email=f"{role.value}@example.com",
        password=PASSWORD,
        display_name=role.value.capitalize(),
        role=role.value,
        is_staff=role == Role.ADMIN,
        is_superuser=role == Role.ADMIN,
    )


def _product(name: str) -> Product:
    """The demo shop breaks a critical deadline after a minute, so that an alert can be watched."""
    defaults = {"name": name, **({"sla_critical_minutes": 1} if name == "Demo Shop" else {})}
    product, _created = Product.objects.get_or_create(slug=slugify(name), defaults=defaults)
    return product


def _point_at_the_inbox(product: Product) -> None:
    if not product.slack_webhook_url or product.slack_webhook_url.endswith(INBOX_PATH):
        product.slack_webhook_url = f"{settings.STEGA_BASE_URL}{INBOX_PATH}"
        product.save(update_fields=["slack_webhook_url"])


def _live_through(story: Story, product: Product, people: dict[Role, User]) -> None:
    customer, agent, admin = people[Role.CUSTOMER], people[Role.AGENT], people[Role.ADMIN]
    ticket = actions.open_ticket(customer, product, story.title, story.body, story.priority)
    if story.assigned:
        actions.assign(admin, ticket.pk, agent)
    if story.note:
        actions.comment(agent, ticket.pk, story.note, internal=True)
    if story.answer:
        actions.comment(agent, ticket.pk, story.answer)
    if story.reply:
        actions.comment(customer, ticket.pk, story.reply)
    for status in story.statuses:
        actions.change_status(agent, ticket.pk, status)
    _age(ticket, story.age)


def _age(ticket: Ticket, age: timedelta) -> None:
    """Move everything about the ticket into the past: opened `age` ago, then one step after the other."""
    events = list(ticket.events.all())
    opened_at = events[0].created_at - age
    pace = min(PACE, age / (len(events) + 1))
    moments = [opened_at + number * pace for number in range(len(events))]
    resolved_at = None
    for event, moment in zip(events, moments, strict=True):
        TicketEvent.objects.filter(pk=event.pk).update(created_at=moment)
        Comment.objects.filter(pk=event.payload.get("comment_id")).update(created_at=moment)
        if event.payload.get("new_status") == Status.RESOLVED:
            resolved_at = moment
    Ticket.objects.filter(pk=ticket.pk).update(
        created_at=opened_at, sla_due_at=F("sla_due_at") - age, updated_at=moments[-1], resolved_at=resolved_at
    )

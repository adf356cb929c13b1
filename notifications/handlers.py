"""Event type -> who is told. Recipients are looked up at delivery: people come, leave and change address."""

import logging
from collections.abc import Callable, Collection
from functools import partial

from django.conf import settings
from django.utils.translation import gettext_noop

from accounts.models import Role, User
from notifications import messages
from notifications.delivery import Notice, deliver
from notifications.models import Channel, reasons_to_skip
from stega.audience import TicketAudience, ticket_audience
from stega.pgque import catalogue
from stega.pgque.consumer import Handler, Message

logger = logging.getLogger(__name__)


def handle(message: Message, *, stopping: Callable[[], bool] = lambda: False) -> None:
    """Tell everybody whom the event concerns; safe to repeat, since the ledger knows who was told.

    Call it outside any transaction, with a payload that the catalogue has checked. Raises RetryLater while somebody
    is still to be told, Rejected when the last of them was given up.
    """
    is_last = message.attempt > settings.PGQUE_MAX_RETRIES
    deliver(NOTICES[message.type](message), is_last=is_last, stopping=stopping)


def welcome(message: Message) -> list[Notice]:
    return _mails(message, _user(message, message.payload["user_id"]))


def sla_breached(message: Message) -> list[Notice]:
    """The assignee, else every admin, and the product's Slack channel."""
    ticket = _ticket(message)
    if ticket is None:
        return []
    people = _user(message, ticket.assignee_id)
    if all(_unreachable(user) for user in people):
        people += _admins()
    return [*_mails(message, people), _post(message, ticket)]


def assigned(message: Message) -> list[Notice]:
    """The assignee, unless they took the ticket themselves or somebody else has it by now."""
    ticket = _ticket(message)
    assignee_id = message.payload["assignee_id"]
    if ticket is None or assignee_id == message.payload["actor_id"]:
        return []
    moved_on = "" if ticket.assignee_id == assignee_id else gettext_noop("No longer the assignee")
    return _mails(message, _user(message, assignee_id), skip=moved_on)


def tell_author(message: Message) -> list[Notice]:
    """The author of the ticket, unless it is their own doing."""
    ticket = _ticket(message)
    if ticket is None or ticket.author_id == message.payload["actor_id"]:
        return []
    return _mails(message, _user(message, ticket.author_id))


def comment_added(message: Message) -> list[Notice]:
    """The author and the assignee of the ticket, except who wrote the comment."""
    ticket = _ticket(message)
    if ticket is None:
        return []
    concerned = dict.fromkeys((ticket.author_id, ticket.assignee_id))
    concerned.pop(message.payload["author_id"], None)
    return [notice for user_id in concerned for notice in _mails(message, _user(message, user_id))]


def weekly_report(message: Message) -> list[Notice]:
    return _mails(message, _admins())


NOTICES: dict[str, Callable[[Message], list[Notice]]] = {
    "ticket.welcome": welcome,
    "ticket.sla_breached": sla_breached,
    "ticket.assigned": assigned,
    "ticket.status_changed": tell_author,
    "ticket.comment_added": comment_added,
    "ticket.resolved": tell_author,
    "report.weekly_ready": weekly_report,
}


def handlers_of(consumer: str, *, stopping: Callable[[], bool] = lambda: False) -> dict[str, Handler]:
    """The handlers of the event types that the catalogue gives to `consumer`, so that nobody is told by two.

    They begin no further recipient once `stopping` says so.
    """
    mine = [name for name in NOTICES if consumer in catalogue.EVENT_TYPES[name].consumers]
    return dict.fromkeys(mine, partial(handle, stopping=stopping))


def _ticket(message: Message) -> TicketAudience | None:
    ticket = ticket_audience(message.payload["ticket_id"])
    if ticket is None:
        logger.info("%s: ticket %s is gone, nobody is told", message.type, message.payload["ticket_id"])
    return ticket


def _user(message: Message, user_id: int | None) -> list[User]:
    """The user as a list of one; empty when there is none, or none any more."""
    users = list(User.objects.filter(pk=user_id)) if user_id is not None else []
    if user_id is not None and not users:
        logger.info("%s: user %s is gone and not told", message.type, user_id)
    return users


def _admins() -> list[User]:
    return list(User.objects.filter(role=Role.ADMIN, is_active=True).order_by("pk"))


def _unreachable(user: User) -> str:
    """Why no mail can go to the user (a msgid); empty when it can."""
    if not user.is_active:
        return gettext_noop("The user is inactive")
    return "" if user.email else gettext_noop("The user has no e-mail address")


def _mails(message: Message, users: Collection[User], *, skip: str = "") -> list[Notice]:
    chosen = reasons_to_skip(message.type, message.payload.get("ticket_id"), [user.pk for user in users])
    return [
        Notice(
            event_key=message.key,
            event_type=message.type,
            ticket_id=message.payload.get("ticket_id"),
            channel=Channel.EMAIL,
            recipient=f"user:{user.pk}",
            address=user.email,
            wording=messages.mail(
                message.type,
                message.payload,
                language=user.language or settings.LANGUAGE_CODE,
                base_url=settings.STEGA_BASE_URL,
            ),
            name=str(user),
            target=user.email,
            skip=_unreachable(user) or skip or chosen.get(user.pk, ""),
        )
        for user in users
    ]


def _post(message: Message, ticket: TicketAudience) -> Notice:
    return Notice(
        event_key=message.key,
        event_type=message.type,
        ticket_id=ticket.ticket_id,
        channel=Channel.SLACK,
        recipient=f"product:{ticket.product_id}",
        address=ticket.product_name,
        wording=messages.slack(
            message.type, message.payload, language=settings.LANGUAGE_CODE, base_url=settings.STEGA_BASE_URL
        ),
        target=ticket.slack_webhook_url,
        skip="" if ticket.slack_webhook_url else gettext_noop("The product has no Slack webhook"),
    )

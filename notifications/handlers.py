"""Event type -> who is told. Recipients are looked up at delivery: people come, leave and change address."""

import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import timedelta
from functools import partial

from django.conf import settings
from django.utils.translation import gettext_noop

from accounts.middleware import time_zone
from accounts.people import Person, active_admins, people
from notifications import messages
from notifications.delivery import deliver
from notifications.messages import Circumstances, Reason
from notifications.models import reasons_to_skip
from notifications.notice import Channel, Notice
from stega.audience import TicketAudience, comment_text, ticket_audience
from stega.pgque import catalogue
from stega.pgque.message import Handler, Message

logger = logging.getLogger(__name__)


def handle(message: Message, *, stopping: Callable[[], bool] = lambda: False) -> None:
    """Tell everybody whom the event concerns; safe to repeat, since the ledger knows who was told.

    Call it outside any transaction, with a payload that the catalogue has checked. Raises RetryLater while somebody
    is still to be told, Rejected when the last of them was given up.
    """
    deliver(NOTICES[message.type](message), is_last=message.is_last, stopping=stopping)


def welcome(message: Message) -> list[Notice]:
    return _mails(message, _user(message, message.payload["user_id"]))


def sla_breached(message: Message) -> list[Notice]:
    """The assignee, else every admin, and the product's Slack channel."""
    ticket = _ticket(message)
    if ticket is None:
        return []
    users = _user(message, ticket.assignee_id)
    if all(_unreachable(user) for user in users):
        users += active_admins()
    seen = Circumstances(due_at=ticket.sla_due_at, open_for=_open_for(ticket))
    mails = [mail for user in users for mail in _mails(message, [user], replace(seen, reason=_concern(user, ticket)))]
    return [*mails, _post(message, ticket, seen)]


def assigned(message: Message) -> list[Notice]:
    """The assignee, unless they took the ticket themselves or somebody else has it by now."""
    ticket = _ticket(message)
    assignee_id = message.payload["assignee_id"]
    if ticket is None or assignee_id == message.payload["actor_id"]:
        return []
    moved_on = "" if ticket.assignee_id == assignee_id else gettext_noop("No longer the assignee")
    seen = Circumstances(Reason.ASSIGNEE, actor=_name(message.payload["actor_id"]))
    return _mails(message, _user(message, assignee_id), seen, skip=moved_on)


def tell_author(message: Message) -> list[Notice]:
    """The author of the ticket, unless it is their own doing."""
    ticket = _ticket(message)
    if ticket is None or ticket.author_id == message.payload["actor_id"]:
        return []
    actor = _name(message.payload["actor_id"])
    reachable = [user.name for user in _user(message, ticket.assignee_id) if not _unreachable(user)]
    seen = Circumstances(Reason.AUTHOR, actor=actor, assignee=reachable[0] if reachable else "")
    return _mails(message, _user(message, ticket.author_id), seen)


def comment_added(message: Message) -> list[Notice]:
    """The author and the assignee of the ticket, except who wrote the comment and who may not read it."""
    ticket = _ticket(message)
    if ticket is None:
        return []
    writer_id, comment_id = message.payload["author_id"], message.payload["comment_id"]
    concerned = {user_id for user_id in (ticket.author_id, ticket.assignee_id) if user_id not in (writer_id, None)}
    notices = []
    for user in people(concerned):
        text = comment_text(comment_id, user.id)
        seen = Circumstances(_concern(user, ticket), actor=_name(writer_id), comment=text or "")
        unreadable = gettext_noop("The comment is gone, or not for this person") if text is None else ""
        notices += _mails(message, [user], seen, skip=unreadable)
    return notices


def weekly_report(message: Message) -> list[Notice]:
    return _mails(message, active_admins())


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


def _user(message: Message, user_id: int | None) -> list[Person]:
    """The user as a list of one; empty when there is none, or none any more."""
    users = people([user_id]) if user_id is not None else []
    if user_id is not None and not users:
        logger.info("%s: user %s is gone and not told", message.type, user_id)
    return users


def _name(user_id: int | None) -> str:
    """The name of who did it; empty when that was Stega, or is nobody any more."""
    users = people([user_id]) if user_id is not None else []
    return users[0].name if users else ""


def _concern(user: Person, ticket: TicketAudience) -> Reason:
    if user.id == ticket.assignee_id:
        return Reason.ASSIGNEE
    return Reason.AUTHOR if user.id == ticket.author_id else Reason.ADMIN


def _open_for(ticket: TicketAudience) -> timedelta | None:
    """From the opening to the breach; None when the breach is forgotten by now."""
    return ticket.sla_breached_at - ticket.opened_at if ticket.sla_breached_at else None


def _unreachable(user: Person) -> str:
    """Why no mail can go to the user (a msgid); empty when it can."""
    if not user.is_active:
        return gettext_noop("The user is inactive")
    return "" if user.email else gettext_noop("The user has no e-mail address")


def _mails(
    message: Message, users: Collection[Person], seen: Circumstances = messages.UNKNOWN, *, skip: str = ""
) -> list[Notice]:
    chosen = reasons_to_skip(message.type, message.payload.get("ticket_id"), [user.id for user in users])
    return [
        Notice(
            event_key=message.key,
            event_type=message.type,
            ticket_id=message.payload.get("ticket_id"),
            channel=Channel.EMAIL,
            recipient=f"user:{user.id}",
            address=user.email,
            wording=messages.mail(
                message.type,
                message.payload,
                language=user.language or settings.LANGUAGE_CODE,
                base_url=settings.STEGA_BASE_URL,
                seen=replace(seen, zone=time_zone(user.time_zone)),
            ),
            name=user.name,
            target=user.email,
            skip=_unreachable(user) or skip or chosen.get(user.id, ""),
        )
        for user in users
    ]


def _post(message: Message, ticket: TicketAudience, seen: Circumstances) -> Notice:
    """Worded only for a product that has a Slack webhook: most have none."""
    wording, skip = messages.NOTHING, gettext_noop("The product has no Slack webhook")
    if ticket.slack_webhook_url:
        language = settings.LANGUAGE_CODE
        base_url = settings.STEGA_BASE_URL
        wording, skip = (
            messages.slack(message.type, message.payload, language=language, base_url=base_url, seen=seen),
            "",
        )
    return Notice(
        event_key=message.key,
        event_type=message.type,
        ticket_id=ticket.ticket_id,
        channel=Channel.SLACK,
        recipient=f"product:{ticket.product_id}",
        address=ticket.product_name,
        wording=wording,
        target=ticket.slack_webhook_url,
        skip=skip,
    )

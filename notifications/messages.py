"""What people read: pure wording, from an event's payload to the text of one mail or Slack post in one language."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any

from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, override

from notifications.text import lines, single_line, slack_escape
from stega.wording.labels import PRIORITY, STATUS
from stega.wording.moments import HOUR, exact, span

SUBJECT_LIMIT = 150
NAME_LIMIT = 200
COMMENT_LIMIT = 2_000
SLACK_LINK_LIMIT = 300
"""How much of a title and its link text goes to Slack, which refuses a block of text of over 3,000 characters."""

Payload = Mapping[str, Any]


@dataclass(frozen=True)
class Wording:
    """One message, ready for its channel: `text` is literal in a mail and escaped for Slack in a post."""

    subject: str
    text: str
    html: str = ""


NOTHING = Wording("", "")


class Reason(StrEnum):
    """Why a person is told about a ticket."""

    AUTHOR = "author"
    ASSIGNEE = "assignee"
    ADMIN = "admin"


@dataclass(frozen=True)
class Circumstances:
    """What the event does not say, as it is when somebody is told."""

    reason: Reason = Reason.AUTHOR
    actor: str = ""  # who did it; empty when Stega did or nobody knows
    assignee: str = ""  # who is told of a comment; empty when nobody is
    comment: str = ""
    due_at: datetime | None = None
    open_for: timedelta | None = None
    zone: tzinfo | None = None  # of the reader; None is the site's


@dataclass(frozen=True)
class Letter:
    """What a mail says, before it is laid out as text and as HTML. Every string is literal, none is markup."""

    subject: str
    paragraphs: tuple[str, ...]
    action: tuple[str, str]  # what the link says, where it leads
    why: str  # why this person gets the mail
    quote: str = ""  # what somebody wrote
    facts: tuple[tuple[str, str], ...] = field(default=())


UNKNOWN = Circumstances()


def mail(event_type: str, payload: Payload, *, language: str, base_url: str, seen: Circumstances = UNKNOWN) -> Wording:
    """Word the mail about one event. KeyError for a type that tells nobody by mail."""
    with override(language), timezone.override(seen.zone):
        letter = LETTERS[event_type](payload, base_url, seen)
        subject = single_line(letter.subject, SUBJECT_LIMIT)
        html = render_to_string("notifications/mail.html", {"letter": letter, "subject": subject})
        return Wording(subject, _as_text(letter), html)


def slack(event_type: str, payload: Payload, *, language: str, base_url: str, seen: Circumstances = UNKNOWN) -> Wording:
    """Word the Slack post about one event. KeyError for a type that is not posted."""
    with override(language), timezone.override(seen.zone):
        return Wording("", POSTS[event_type](payload, base_url, seen))


def _as_text(letter: Letter) -> str:
    facts = "\n".join(f"{label}: {value}" for label, value in letter.facts)
    label, url = letter.action
    quote = "\n".join(f"> {line}".rstrip() for line in letter.quote.splitlines())
    parts = (*letter.paragraphs, quote, facts, f"{label}:\n{url}", f"-- \n{letter.why}")
    return "\n\n".join(part for part in parts if part) + "\n"


def _welcome(payload: Payload, base_url: str, seen: Circumstances) -> Letter:
    name = single_line(payload["display_name"] or payload["email"], NAME_LIMIT)
    return Letter(
        subject=_("Welcome to Stega"),
        paragraphs=(
            _("Hello %(name)s,") % {"name": name},
            _("Your account is ready. Open a ticket when something needs attention: we write to you when it moves."),
        ),
        action=(_("Open Stega"), f"{base_url}/"),
        why=_("You get this mail once, because you signed in to Stega for the first time."),
    )


def _sla_breached(payload: Payload, base_url: str, seen: Circumstances) -> Letter:
    return _about_ticket(
        payload,
        base_url,
        seen,
        subject=_("SLA breached: %(title)s"),
        says=_("This ticket has passed its SLA deadline and is still open."),
        facts=(
            (_("Product"), single_line(payload["product_name"], NAME_LIMIT)),
            (_("Priority"), _label(PRIORITY, payload["priority"])),
            *([(_("Deadline"), exact(seen.due_at))] if seen.due_at else []),
            (_("Open for"), _elapsed(payload["elapsed_hours"], seen.open_for)),
        ),
    )


def _assigned(payload: Payload, base_url: str, seen: Circumstances) -> Letter:
    return _about_ticket(
        payload,
        base_url,
        seen,
        subject=_("Assigned to you: %(title)s"),
        says=_by(seen, _("%(actor)s assigned this ticket to you.")) or _("This ticket is now yours."),
        why=_("You get this mail because the ticket was assigned to you."),
    )


def _status_changed(payload: Payload, base_url: str, seen: Circumstances) -> Letter:
    return _about_ticket(
        payload,
        base_url,
        seen,
        subject=_("Status changed: %(title)s"),
        says=_by(seen, _("%(actor)s changed the status of your ticket.")) or _("Your ticket has a new status."),
        facts=((_("Before"), _label(STATUS, payload["old_status"])), (_("Now"), _label(STATUS, payload["new_status"]))),
    )


def _comment_added(payload: Payload, base_url: str, seen: Circumstances) -> Letter:
    return _about_ticket(
        payload,
        base_url,
        seen,
        subject=_("New comment: %(title)s"),
        says=_by(seen, _("%(actor)s wrote on this ticket:")) or _("There is a new comment on this ticket:"),
        quote=lines(seen.comment, COMMENT_LIMIT),
    )


def _resolved(payload: Payload, base_url: str, seen: Circumstances) -> Letter:
    return _about_ticket(
        payload,
        base_url,
        seen,
        subject=_("Resolved: %(title)s"),
        says=(_by(seen, _("%(actor)s resolved your ticket.")) or _("Your ticket is resolved."))
        + " "
        + _what_next(seen),
    )


def _by(seen: Circumstances, sentence: str) -> str:
    """The sentence with the name of who did it; empty when nobody is known to."""
    return sentence % {"actor": single_line(seen.actor, NAME_LIMIT)} if seen.actor else ""


def _what_next(seen: Circumstances) -> str:
    if not seen.assignee:
        return _("If the problem is still there, write a comment on the ticket.")
    name = single_line(seen.assignee, NAME_LIMIT)
    return _("If the problem is still there, write a comment: %(name)s is told.") % {"name": name}


def _why(reason: Reason) -> str:
    return {
        Reason.AUTHOR: _("You get this mail because you opened the ticket."),
        Reason.ASSIGNEE: _("You get this mail because the ticket is assigned to you."),
        Reason.ADMIN: _("You get this mail because you are an admin and no assignee of the ticket can be told."),
    }[reason]


def _about_ticket(
    payload: Payload,
    base_url: str,
    seen: Circumstances,
    *,
    subject: str,
    says: str,
    why: str = "",
    quote: str = "",
    facts: tuple[tuple[str, str], ...] = (),
) -> Letter:
    title = single_line(payload["title"], NAME_LIMIT)
    return Letter(
        subject=f"[#{payload['ticket_id']}] " + subject % {"title": title},
        paragraphs=(says,),
        facts=((_("Ticket"), f"#{payload['ticket_id']} {title}"), *facts),
        action=(_("Open the ticket"), _ticket_url(payload, base_url)),
        why=why or _why(seen.reason),
        quote=quote,
    )


def _weekly_report(payload: Payload, base_url: str, seen: Circumstances) -> Letter:
    stats = payload["stats"]
    product = single_line(payload["product_name"], NAME_LIMIT)
    return Letter(
        subject=_("Weekly report: %(product)s") % {"product": product},
        paragraphs=(
            _("How the tickets of %(product)s stand, and how the last seven days went.") % {"product": product},
        ),
        facts=(
            (_("Open tickets"), str(stats["open_count"])),
            (_("Tickets in progress"), str(stats["in_progress_count"])),
            (_("Resolved tickets"), str(stats["resolved_count"])),
            (_("Opened in the last 7 days"), str(stats["created_last_7d"])),
            (_("Resolved in the last 7 days"), str(stats["resolved_last_7d"])),
            (_("Average time to resolution"), _average(stats["avg_resolution_hours"])),
        ),
        action=(_("Open Stega"), f"{base_url}/"),
        why=_("You get this mail each week because you are an admin."),
    )


def _sla_breached_post(payload: Payload, base_url: str, seen: Circumstances) -> str:
    title = single_line(payload["title"], NAME_LIMIT)
    link_text = slack_escape(f"#{payload['ticket_id']} {title}", SLACK_LINK_LIMIT)
    product = slack_escape(single_line(payload["product_name"], NAME_LIMIT), SLACK_LINK_LIMIT)
    return "\n".join(
        (
            f":rotating_light: *{_('SLA breached')}*: <{_ticket_url(payload, base_url)}|{link_text}>",
            f"{_('Product')}: {product}",
            f"{_('Priority')}: {slack_escape(_label(PRIORITY, payload['priority']), NAME_LIMIT)}",
            *([f"{_('Deadline')}: {exact(seen.due_at)}"] if seen.due_at else []),
            f"{_('Open for')}: {_elapsed(payload['elapsed_hours'], seen.open_for)}",
        )
    )


def _ticket_url(payload: Payload, base_url: str) -> str:
    return f"{base_url}/tickets/{payload['ticket_id']}/"


def event_name(event_type: str) -> str:
    """What staff call the event; the type itself when it has no name."""
    names = {
        "ticket.welcome": _("Welcome"),
        "ticket.sla_breached": _("SLA breached"),
        "ticket.assigned": _("Assignment"),
        "ticket.status_changed": _("New status"),
        "ticket.comment_added": _("New comment"),
        "ticket.resolved": _("Resolved"),
        "report.weekly_ready": _("Weekly report"),
    }
    return names.get(event_type, event_type)


def _elapsed(hours: int, open_for: timedelta | None) -> str:
    if hours < 1:
        return span(open_for) if open_for is not None and open_for < HOUR else _("less than an hour")
    return ngettext("%(hours)d hour", "%(hours)d hours", hours) % {"hours": hours}


def _average(hours: float | None) -> str:
    if hours is None:
        return _("nothing resolved yet")
    return _("%(hours)s h") % {"hours": number_format(hours, 1)}


def _label(labels: Mapping[str, str | Promise], value: str) -> str:
    """The word for it; the value itself when a later version sent it."""
    return str(labels.get(value) or single_line(value, NAME_LIMIT))


LETTERS: dict[str, Callable[[Payload, str, Circumstances], Letter]] = {
    "ticket.welcome": _welcome,
    "ticket.sla_breached": _sla_breached,
    "ticket.assigned": _assigned,
    "ticket.status_changed": _status_changed,
    "ticket.comment_added": _comment_added,
    "ticket.resolved": _resolved,
    "report.weekly_ready": _weekly_report,
}
"""Event type -> its mail."""

POSTS: dict[str, Callable[[Payload, str, Circumstances], str]] = {"ticket.sla_breached": _sla_breached_post}
"""Event type -> its Slack post."""

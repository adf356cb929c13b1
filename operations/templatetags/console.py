"""How the console shows figures, moments and what does not answer."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.functional import Promise
from django.utils.html import format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from notifications.models import Delivery
from operations import reasons
from operations.console.addresses import problem_address
from operations.dead_letters import GroupKey
from operations.facts.reading import COUNT_LIMIT, Reading, Trouble
from operations.problems.words import Problem
from operations.ways import Way
from stega.wording import moments

register = template.Library()

NOTHING = "–"

TROUBLES: Mapping[Trouble, str | Promise] = {
    Trouble.UNREACHABLE: gettext_lazy("The database “%(alias)s” cannot be reached."),
    Trouble.SILENT: gettext_lazy("The database “%(alias)s” did not answer in time."),
    Trouble.UNPREPARED: gettext_lazy("The database “%(alias)s” has not been prepared."),
    Trouble.REFUSED: gettext_lazy("The database “%(alias)s” refused the question."),
}

READER_STATES: Mapping[str, str | Promise] = {
    "dead": gettext_lazy("dead letter"),
    "retry": gettext_lazy("comes again"),
    "in_hand": gettext_lazy("in hand"),
    "handled": gettext_lazy("handled"),
    "waiting": gettext_lazy("waiting"),
}


@register.filter
def span(value: timedelta | float | None) -> str:
    """A duration as a figure: 0.02 s, 4 s, 12 min, 3 h, 5 d."""
    if value is None:
        return NOTHING
    duration = value if isinstance(value, timedelta) else timedelta(seconds=value)
    seconds = max(0.0, duration.total_seconds())
    if seconds < 60:
        digits = 2 if seconds < 1 else 1 if seconds < 10 else 0
        return _("%(count)s s") % {"count": number_format(round(seconds, digits), digits)}
    return moments.span(duration)


@register.filter
def amount(value: float | None, digits: int | None = None) -> str:
    """A number with its thousands apart; with decimals only where it is small."""
    if value is None:
        return NOTHING
    if digits is None:
        digits = 0 if isinstance(value, int) or value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return number_format(round(value, digits), digits, force_grouping=True)


@register.filter
def capped(value: int | None, limit: int = COUNT_LIMIT) -> str:
    """A count that ends at a limit: 10,000+."""
    if value is None:
        return NOTHING
    return f"{amount(limit)}+" if value >= limit else amount(value)


@register.inclusion_tag("stega/moment.html")
def when(value: datetime) -> dict[str, Any]:
    """A moment past or to come, with the exact time for a closer look."""
    now = timezone.now()
    text = moments.ago(value, now) if value <= now else moments.until(value, now)
    return {"moment": value, "text": text, "exact": moments.exact(value)}


@register.filter
def age(value: datetime) -> str:
    """How long a past moment is ago, as a figure."""
    return moments.span(timezone.now() - value)


@register.filter
def breakable(name: object) -> SafeString:
    """A name of the code, which on a narrow page is broken after "_" and "." rather than in the middle of a word."""
    return format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in re.split(r"(?<=[_.])(?=\w)", str(name))))


@register.filter
def clock(value: datetime) -> str:
    """The time of day where the reader is, in 24 hours as under "As of"."""
    return date_format(timezone.localtime(value), "H:i")


@register.simple_tag
def trouble(reading: Reading[Any]) -> str:
    """Why the database told nothing; empty when it answered."""
    return str(TROUBLES[reading.trouble]) % {"alias": reading.alias} if reading.trouble else ""


@register.filter
def reader_state(state: str) -> str:
    return str(READER_STATES[state])


@register.filter
def problem_url(problem: Problem) -> str:
    return problem_address(problem.name)


@register.simple_tag
def act_url(kind: str, **target: Any) -> str:
    """The address of the question before an action."""
    return _address("operations:act", target, kind)


@register.simple_tag
def group_act_url(kind: str, group: GroupKey) -> str:
    return _address("operations:act", group.as_dict(), kind)


@register.simple_tag
def group_url(group: GroupKey) -> str:
    return _address("operations:dead_letter_group", group.as_dict())


def _address(name: str, query: Mapping[str, Any], *args: Any) -> str:
    address = reverse(name, args=args)
    return f"{address}?{urlencode(query)}" if query else address


@register.filter
def payload_of(payloads: Mapping[int, str], id: int) -> str:
    return payloads.get(id, "")


@register.filter
def ticket_of(way: Way) -> int | None:
    return way.promise.value.ticket_id if way.promise.value else None


@register.filter
def first_line(value: object) -> str:
    """What failed and where, of a result that goes on with the traceback."""
    return str(value).partition("\n")[0]


PARTS: Mapping[str, str | Promise] = {
    "queue": gettext_lazy("Queue"),
    "consumer": gettext_lazy("Consumer"),
    "type": gettext_lazy("Event"),
    "cause": gettext_lazy("Cause"),
    "id": gettext_lazy("Letter"),
    "task": gettext_lazy("Task"),
    "key": gettext_lazy("Key"),
    "name": gettext_lazy("Schedule"),
}


@register.simple_tag
def part_label(name: str) -> str:
    """What a part of a target is called."""
    return str(PARTS[name])


@register.simple_tag
def recipient(row: Delivery, names: Mapping[str, str]) -> str:
    """Who it is, as far as anybody knows."""
    return names.get(row.recipient) or row.address or row.recipient


@register.filter
def cause(text: str) -> str:
    """What the reasons of a group have in common, with a gap where they differ."""
    return re.sub(r"#(?:[\s.:,/-]*#)*", "…", reasons.translated(text)) or _("no reason given")


@register.filter
def in_words(reason: str | None) -> str:
    """Why something was given up, in the reader's language as far as Stega said it."""
    return reasons.translated(reason or "")

"""Why an event or a task was given up, in the reader's language.

It is stored in English, as whoever gave up said it. What Stega's own code says is known here by its templates; what a
server or an error said stays as it is.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from django.utils.translation import gettext, gettext_noop, pgettext

from stega import outbox
from stega.pgque import catalogue, consumer, message

GIVEN_UP = gettext_noop("%(channel)s to %(recipient)s given up: %(failure)s")
"""As notifications.delivery says it. The failure is a msgid, or one with what the other side said after a colon."""

TEMPLATES = (
    *(message.BAD_PAYLOAD, GIVEN_UP),
    *(message.NO_OBJECT, message.TOO_LARGE, message.NO_JSON),
    *(catalogue.LACKS, catalogue.NEEDS, catalogue.NO_TYPE),
    *(consumer.UNKNOWN_TYPE, consumer.NO_HANDLER, consumer.WORKERS_DIED, outbox.NEVER_ENDS),
)
"""Those that hold others within come before what they hold."""

_PLACE = re.compile(r"%\((\w+)\)s")


def translated(reason: str) -> str:
    """The reason, or the cause of a group of reasons, in the active language."""
    for template, pattern in _patterns():
        if found := pattern.fullmatch(reason):
            told = {name: _PARTS.get(name, str)(value) for name, value in found.groupdict().items()}
            return gettext(template) % told
    return reason


def _failure(text: str) -> str:
    """A channel's own words are a msgid; the other side's follow them."""
    parts = text.split(": ")
    for end in range(len(parts), 0, -1):
        words = ": ".join(parts[:end])
        if (translation := gettext(words)) != words:
            return ": ".join([translation, *parts[end:]])
    return text


def _kinds(text: str) -> str:
    either = pgettext("between JSON types", "or")
    return text.replace(" or ", f" {either} ")


_PARTS: Mapping[str, Callable[[str], str]] = {"failure": _failure, "fault": translated, "kinds": _kinds}


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((template, re.compile("".join(_pieces(template)), re.DOTALL)) for template in TEMPLATES)


def _pieces(template: str) -> Iterable[str]:
    for number, piece in enumerate(_PLACE.split(template)):
        yield f"(?P<{piece}>.+?)" if number % 2 else re.escape(piece)

"""Foreign text made fit for a medium: one line, a limit, the escapes of Slack."""

import re

from stega.wording.text import one_line, without_overrides

ELLIPSIS = "…"
DETAIL_LIMIT = 500
"""How much is kept of what another machine says about a failure."""
QUOTE_LENGTH = 12
"""So many signs in a row are no accident: somebody has quoted them."""
_ADDRESSEE = re.compile(r'(?:"[^"]*"|[^\s<>(),:;"=]+)(?=@)')
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def single_line(value: object, limit: int) -> str:
    """`value` as one printable line of at most `limit` characters; every kind of line break becomes a blank."""
    return cut(one_line(_UNPRINTABLE.sub(" ", str(value))), limit)


def lines(value: object, limit: int) -> str:
    """`value` as printable lines of at most `limit` characters together."""
    kept = (_UNPRINTABLE.sub(" ", without_overrides(line)).rstrip() for line in str(value).splitlines())
    return cut("\n".join(kept).strip("\n"), limit)


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + ELLIPSIS


def without_addresses(text: str) -> str:
    """`text` with an ellipsis for whom each mail address in it belongs to; the domain stays."""
    return _ADDRESSEE.sub(ELLIPSIS, text)


def without_quotes(text: str, source: str) -> str:
    """`text` with an ellipsis for each run of QUOTE_LENGTH signs or more that it takes from `source`."""
    source = one_line(source).lower()
    kept, place = "", 0
    while place < len(text):
        quote = _quote_at(place, text, source)
        kept += ELLIPSIS if quote else text[place]
        place += len(quote) or 1
    return kept


def _quote_at(place: int, text: str, source: str) -> str:
    """The longest run of `text` from there on that stands in `source`, from word to word; empty when it is short."""
    end = place + QUOTE_LENGTH
    if text[place].isspace() or end > len(text) or text[place:end].lower() not in source:
        return ""
    while end < len(text) and text[place : end + 1].lower() in source:
        end += 1
    return text[place:end].rstrip()


def slack_escape(text: str, limit: int) -> str:
    """`text` as literal characters of a Slack message, at most `limit` of them after escaping.

    Slack reads only `&`, `<` and `>`: escaped, no text can mention a channel, a person or disguise a link.
    """
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if len(escaped) <= limit:
        return escaped
    return re.sub(r"&[a-z]*$", "", escaped[: limit - 1]).rstrip() + ELLIPSIS

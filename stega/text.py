"""Text that may be stored, shown and logged anywhere."""

import re
import traceback
import unicodedata

_UNSEEN = {"Cc", "Cf", "Cn", "Cs", "Zl", "Zp", "Zs"}
# Letters and marks by category, and yet blank: fillers, the blank Braille pattern, joiners, variation selectors.
_UNSEEN_LETTERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_DIRECTION_OVERRIDES = re.compile("[\u202a-\u202e\u2066-\u2069]")


def is_invisible(text: str) -> bool:
    """Whether the text shows nothing at all, whatever it consists of."""
    return all(unicodedata.category(sign) in _UNSEEN for sign in _UNSEEN_LETTERS.sub("", text))


def without_overrides(text: str) -> str:
    """The text without what turns the order of the text after it, so that it shows something else than it says."""
    return _DIRECTION_OVERRIDES.sub("", text)


def one_line(text: str) -> str:
    return " ".join(without_overrides(text).split())


def clean(text: str, limit: int) -> str:
    """The text without what PostgreSQL refuses (NUL, halves of surrogate pairs), cut to `limit` characters."""
    kept = text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def told_by(error: BaseException) -> str:
    """What people may read of an error: a database's own sentence, without the rows, hints and code that it quotes
    after it; of any other error its kind alone.
    """
    diagnosis = getattr(error.__cause__, "diag", None)
    return one_line(getattr(diagnosis, "message_primary", None) or type(error).__name__)


def trace(error: BaseException) -> str:
    """The error's traceback, clean: an error may quote what a stranger wrote."""
    return clean("".join(traceback.format_exception(error)), 10_000)

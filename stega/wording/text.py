"""Text that may be stored, shown and logged anywhere."""

import re
import traceback
import unicodedata
from pathlib import Path

from stega.database.mismatch import OtherSchema

ROOT = Path(__file__).resolve().parents[2]

_UNSEEN = {"Cc", "Cf", "Cn", "Cs", "Zl", "Zp", "Zs"}
# Letters and marks by category, and yet blank: fillers, the blank Braille pattern, joiners, variation selectors.
_UNSEEN_LETTERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_DIRECTION_OVERRIDES = re.compile("[\u202a-\u202e\u2066-\u2069]")


def is_invisible(text: str) -> bool:
    """Whether the text shows nothing at all, whatever it consists of."""
    return all(unicodedata.category(sign) in _UNSEEN for sign in _UNSEEN_LETTERS.sub("", text))


def without_overrides(text: str) -> str:
    """The text without what turns the order of the text after it, so that it shows something else than it says."""
    return _DIRECTION_OVERRIDES.sub("", text)


def one_line(text: str) -> str:
    return " ".join(without_overrides(text).split())


def escaped(text: str) -> str:
    """The text with JSON's escape in place of what ends its line, turns its order or commands a terminal."""
    return _CONTROLS.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def clean(text: str, limit: int) -> str:
    """The text without what PostgreSQL refuses (NUL, halves of surrogate pairs), cut to `limit` characters."""
    kept = text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def told(error: BaseException) -> str:
    """What the error is and where it came about, without its words: they may quote what a stranger wrote.

    Of what the event log refuses, its own words: they name queues and numbers alone. So of a schema of another version.
    """
    if isinstance(error, OtherSchema):
        return clean(str(error), 500)
    diagnosis = getattr(error.__cause__ or error, "diag", None)
    if diagnosis and diagnosis.sqlstate == "P0001":
        return clean(diagnosis.message_primary, 500)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own(Path(frame.filename))]
    place = "".join(f" at {_shown(frame.filename)}:{frame.lineno}" for frame in (own or frames)[-1:])
    return f"{_kind(error)}{place}"


def trace(error: BaseException) -> str:
    """The error's traceback and those of its causes, without their words, as `told` does."""
    blocks = ["".join([*traceback.format_tb(each.__traceback__), _kind(each)]) for each in reversed(_chain(error))]
    return clean("\nwhich led to\n".join(blocks), 10_000)


def traceback_of(error: BaseException) -> str:
    """The traceback as Python tells it, for a log; without words where a database had a say, which quotes rows."""
    if any(hasattr(each, "sqlstate") for each in _chain(error)):
        return trace(error)
    return clean("".join(traceback.format_exception(error)), 10_000)


def _chain(error: BaseException) -> list[BaseException]:
    """The error, what led to it, what led to that."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return chain


def _kind(error: BaseException) -> str:
    """The class, with the database's SQLSTATE."""
    sqlstate = getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None)
    return type(error).__name__ + (f" {sqlstate}" if sqlstate else "")


def _is_own(file: Path) -> bool:
    return file.is_relative_to(ROOT) and "site-packages" not in file.parts


def _shown(name: str) -> str:
    file = Path(name)
    return str(file.relative_to(ROOT)) if _is_own(file) else file.name

"""Text that may be stored, shown and logged anywhere."""

import traceback


def clean(text: str, limit: int) -> str:
    """The text without what PostgreSQL refuses (NUL, halves of surrogate pairs), cut to `limit` characters."""
    kept = text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def trace(error: BaseException) -> str:
    """The error's traceback, clean: an error may quote what a stranger wrote."""
    return clean("".join(traceback.format_exception(error)), 10_000)

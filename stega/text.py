"""Text that may be stored and shown anywhere."""


def clean(text: str, limit: int) -> str:
    """The text without what PostgreSQL refuses (NUL, halves of surrogate pairs), cut to `limit` characters."""
    kept = text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"

"""When a line out of Stega (a mail server, a Slack webhook) is used, and when it is left in peace."""

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True)
class LineState:
    """How a line is, as its circuit tells."""

    failures: int = 0
    """In a row."""
    seconds: float | None = None
    """Until the next try; None for a line in use."""


@dataclass(frozen=True)
class Admission:
    """How long to stay off a line: 0 to use it now."""

    seconds: float = 0.0
    is_slot: bool = False
    """Whether the wait ends with a turn of one's own on a paced line."""
    is_probe: bool = False
    """Whether this is the one try at a line that failed."""
    failures: int = 0
    """Failures in a row of a line in use."""


def pause(failures: int, asked: float | None) -> float:
    """How long nobody uses a line after so many failures in a row: 0 while that may be one recipient's trouble.

    What the other side asks for (`asked`) holds from the first failure on. Later pauses double, up to a limit: so
    long at most the first delivery waits once the line is mended.
    """
    over = failures - settings.CIRCUIT_FAILURES
    if over < 0:
        return asked or 0.0
    growing = settings.CIRCUIT_PAUSE_SECONDS * 2.0 ** min(over, 30)
    return max(asked or 0.0, min(growing, settings.CIRCUIT_LONGEST_PAUSE_SECONDS))

"""The ways to reach a person: each module sends one wording to one target, and sorts failures into two kinds."""

from notifications.text import without_addresses


class Failure(Exception):
    """Why a message did not go through: `reason` is a msgid, `detail` the other side's own words.

    The words may name an address, which is for the ledger; as text, for logs and dead letters, the failure names none.
    """

    def __init__(self, reason: str, detail: object = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = str(detail)

    def __str__(self) -> str:
        return f"{self.reason}: {without_addresses(self.detail)}" if self.detail else self.reason


class TemporaryFailure(Failure):
    """The same message may go through later. The channel is at fault, unless a subclass says otherwise."""

    def __init__(self, reason: str, detail: object = "", *, seconds: float | None = None) -> None:
        super().__init__(reason, detail)
        self.seconds = seconds
        """How long the other side asks us to wait; None when it does not say."""


class Deferred(TemporaryFailure):
    """The other side works, and puts off this recipient or this message: it says nothing against the channel."""


class Untried(TemporaryFailure):
    """We did not ask the other side, by a limit of our own: it says nothing about channel, recipient or message."""


class Uncertain(TemporaryFailure):
    """The other side has the message and did not answer: it may have gone through."""


class PermanentFailure(Failure):
    """This message will never reach this recipient: trying again helps nobody."""


class Unsendable(PermanentFailure):
    """A failure found before the other side was asked: it says nothing about the channel."""

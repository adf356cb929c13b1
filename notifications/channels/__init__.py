"""The ways to reach a person: each module sends one wording to one target, and sorts failures into two kinds."""


class Failure(Exception):
    """Why a message did not go through: `reason` is a msgid, `detail` the other side's own words."""

    def __init__(self, reason: str, detail: object = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = str(detail)


class TemporaryFailure(Failure):
    """The channel, not the recipient, is at fault: the same message may go through later."""

    def __init__(self, reason: str, detail: object = "", *, seconds: float | None = None) -> None:
        super().__init__(reason, detail)
        self.seconds = seconds
        """How long the other side asks us to wait; None when it does not say."""


class PermanentFailure(Failure):
    """This message will never reach this recipient: trying again helps nobody."""


class Unsendable(PermanentFailure):
    """A failure found before the other side was asked: it says nothing about the channel."""

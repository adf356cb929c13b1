from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.utils.translation import gettext as _

from operations.facts.ledger import Ledger
from operations.problems import words
from operations.problems.words import Problem, seconds

GREYLISTED = timedelta(minutes=15)
"""How long a server may put off whom it sees for the first time."""


def faults(ledger: Ledger) -> Iterator[Problem]:
    """A line counts as down until a probe gets through, as long as anything waits for it or the pause goes on.

    A mail server that answers and puts everybody off is as bad, once it is no greylisting, which ends by itself.
    """
    if (put_off := ledger.put_off) and put_off.oldest > GREYLISTED and put_off.people >= settings.CIRCUIT_FAILURES:
        yield words.MAIL_PUT_OFF.of("email", number=put_off.people, age=seconds(put_off.oldest))
    waiting = {each.channel: each.deliveries for each in ledger.waiting}
    for line in ledger.lines:
        if line.failures < settings.CIRCUIT_FAILURES or line.retry_at is None:
            continue
        if line.retry_at < ledger.at and not waiting.get(line.channel):
            continue
        down = words.SMTP_DOWN if line.channel == "email" else words.SLACK_DOWN
        reason = _(line.reason) if line.reason else "-"
        yield down.of(line.name, line=line.name, number=line.failures, reason=reason)

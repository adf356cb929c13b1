from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings

from operations.facts.outbox import Outbox
from operations.problems import words
from operations.problems.words import Problem, seconds


def faults(outbox: Outbox) -> Iterator[Problem]:
    patience = timedelta(seconds=settings.OUTBOX_STUCK_SECONDS)
    if outbox.oldest_untried and outbox.oldest_untried > patience:
        yield words.OUTBOX_STUCK.of("outbox", number=outbox.open - outbox.failing, age=seconds(outbox.oldest_untried))
    elif outbox.oldest_open and outbox.oldest_open > patience:
        yield words.OUTBOX_FAILS.of("outbox", number=outbox.failing, age=seconds(outbox.oldest_open))
    newest = outbox.last_given_up_at
    if newest and outbox.at - newest < timedelta(seconds=settings.DEAD_LETTER_ALERT_SECONDS):
        yield words.TASK_GIVEN_UP.of("outbox", number=outbox.given_up)

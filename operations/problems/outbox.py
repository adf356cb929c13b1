from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings

from operations.facts.outbox import Outbox
from operations.problems import words
from operations.problems.words import Problem, seconds


def faults(outbox: Outbox) -> Iterator[Problem]:
    if outbox.oldest_open and outbox.oldest_open > timedelta(seconds=settings.OUTBOX_STUCK_SECONDS):
        yield words.OUTBOX_STUCK.of("outbox", number=outbox.open, age=seconds(outbox.oldest_open))
    newest = outbox.last_given_up_at
    if newest and outbox.at - newest < timedelta(seconds=settings.DEAD_LETTER_ALERT_SECONDS):
        yield words.TASK_GIVEN_UP.of("outbox", number=outbox.given_up)

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings

from operations.facts.actions import Actions
from operations.problems import words
from operations.problems.words import Problem, seconds


def faults(actions: Actions) -> Iterator[Problem]:
    if is_stuck(actions):
        age = seconds(actions.longest_still or timedelta())
        yield words.ACTION_STUCK.of("actions", number=actions.open, age=age)


def is_stuck(actions: Actions) -> bool:
    still = actions.longest_still
    return still is not None and still > timedelta(seconds=settings.ACTION_STUCK_SECONDS)

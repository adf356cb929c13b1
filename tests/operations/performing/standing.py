"""How an action stands, and the letters that it is about."""

from datetime import timedelta

from django.utils import timezone

from operations.models import OperatorAction
from stega.pgque import oversight

WORKER = "notification_worker"
CAUSE = "no such mailbox"


def lose_the_lease():
    OperatorAction.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))


def state_of(action):
    return OperatorAction.objects.get(pk=action).state


def left(group):
    return oversight.count_dead_letters(group, 2**62, 10_000)

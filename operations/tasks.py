"""What django-q2 runs for this app: the work of operator actions, and the samples of the charts."""

import uuid
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from operations import performing, sampling
from operations.models import Sample
from stega.database import pruning


def perform_operator_action(action_id: int, *, event_key: uuid.UUID) -> dict[str, Any]:
    return performing.perform(action_id)


def resume_operator_actions() -> dict[str, int]:
    return performing.resume()


def take_samples() -> dict[str, int]:
    return sampling.take()


def prune_samples(days: int = 7) -> dict[str, int]:
    """Delete the samples of more than `days` ago; run by a schedule each hour. The record of actions is kept."""
    old = Sample.objects.filter(at__lt=Now() - timedelta(days=days))
    return {"pruned": pruning.delete(old, "at")}

"""What django-q2 keeps of finished tasks.

Beside the outbox and not in stega.tasks: queued tasks name its function, and must find it after an upgrade.
"""

from datetime import timedelta
from typing import Any

from django.db.models.functions import Now
from django_q.models import Task

from stega.database import pruning


def prune(days: int = 14) -> dict[str, Any]:
    """Delete results more than `days` old; run by a schedule each hour.

    Not by django-q2's own `save_limit`, which reads every result it keeps at every task.
    """
    old = Task.objects.filter(stopped__lt=Now() - timedelta(days=days))
    return {"pruned": pruning.delete(old, "stopped")}

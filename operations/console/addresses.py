"""Where the console shows what an action is done to."""

from collections.abc import Mapping

from django.urls import reverse
from django.utils.http import urlencode

from operations.models import Kind


def subject_address(kind: Kind | str, target: Mapping[str, str]) -> str:
    """The page of the target: where the action was asked for."""
    if kind in (Kind.REPLAY_LETTER, Kind.PURGE_LETTER):
        return reverse("operations:dead_letter", args=[target["id"]])
    if kind in (Kind.REPLAY_GROUP, Kind.PURGE_GROUP):
        return f"{reverse('operations:dead_letter_group')}?{urlencode(target)}"
    if kind == Kind.RETRY_ENTRY:
        return reverse("operations:event", args=[target["key"]])
    return reverse("operations:tasks" if kind == Kind.RUN_SCHEDULE else "operations:outbox")

"""Where the console shows what an action is done to."""

from collections.abc import Mapping

from django.urls import reverse
from django.utils.http import urlencode

from operations.models import Kind
from operations.problems.words import Name
from operations.targets import TARGETS

_LISTS: Mapping[str, str] = {
    Kind.REPLAY_LETTER: "operations:dead_letters",
    Kind.REPLAY_GROUP: "operations:dead_letters",
    Kind.PURGE_LETTER: "operations:dead_letters",
    Kind.PURGE_GROUP: "operations:dead_letters",
    Kind.RETRY_ENTRY: "operations:outbox",
    Kind.RETRY_ENTRIES: "operations:outbox",
    Kind.SETTLE_ENTRY: "operations:outbox",
    Kind.SETTLE_ENTRIES: "operations:outbox",
    Kind.RUN_SCHEDULE: "operations:tasks",
}

_PAGES: Mapping[Name, str] = {
    Name.POISON_MESSAGE: "dead_letters",
    Name.ROTATION_BLOCKED: "queues",
    Name.TICKER_DEAD: "tickers",
    Name.WORKER_DEAD: "consumers",
    Name.MEMBER_SILENT: "consumers",
    Name.CLUSTER_DEAD: "tasks",
    Name.CLUSTER_STUCK: "tasks",
    Name.SCHEDULE_LATE: "tasks",
    Name.OUTBOX_STUCK: "outbox",
    Name.TASK_GIVEN_UP: "outbox",
    Name.ACTION_STUCK: "actions",
    Name.SMTP_DOWN: "ledger",
    Name.SLACK_DOWN: "ledger",
}
_STATES: Mapping[Name, str] = {
    Name.TASK_GIVEN_UP: "given_up",
    Name.SMTP_DOWN: "pending",
    Name.SLACK_DOWN: "pending",
}


def problem_address(name: Name) -> str:
    """The page that shows what the problem is about; empty when there is no other than the overview."""
    if name not in _PAGES:
        return ""
    address = reverse(f"operations:{_PAGES[name]}")
    return f"{address}?{urlencode({'state': _STATES[name]})}" if name in _STATES else address


def subject_address(kind: Kind | str, target: Mapping[str, str]) -> str:
    """The page of the target: where the action was asked for; of one that cannot be, the list of its kind.

    The record is kept for ever, so it may hold a target that would not be taken today.
    """
    try:
        target = TARGETS[Kind(kind)].named(target)
    except ValueError:
        return reverse(_LISTS.get(kind, "operations:actions"))
    if kind in (Kind.REPLAY_LETTER, Kind.PURGE_LETTER):
        return reverse("operations:dead_letter", args=[target["id"]])
    if kind in (Kind.REPLAY_GROUP, Kind.PURGE_GROUP):
        return f"{reverse('operations:dead_letter_group')}?{urlencode(target)}"
    if kind in (Kind.RETRY_ENTRY, Kind.SETTLE_ENTRY):
        return reverse("operations:event", args=[target["key"]])
    return reverse(_LISTS[kind])

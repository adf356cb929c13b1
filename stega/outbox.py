"""The outbox: the only door to django-q2.

A change and the promise of its side effect commit together (`enqueue`). After the commit the entry is relayed to
django-q2 at once (fast path); what the fast path missed, a schedule relays each minute (`sweep`). The task worker
performs the entry and marks it done. Every step may be repeated: the entry's key travels with the event to the
delivery ledger, which tells each person once.
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections, transaction
from django.db.models import BooleanField, ExpressionWrapper, F, Q
from django.db.models.functions import Greatest, Now
from django.utils.module_loading import import_string
from django.utils.translation import gettext_noop
from django_q.tasks import async_task  # noqa: TID251 - the one place that may

from stega import logs
from stega.bounded import BoundedCaller
from stega.database import patience, pruning
from stega.database.outages import is_outage
from stega.models import OutboxEntry
from stega.wording.text import clean, told, trace

logger = logging.getLogger(__name__)

SWEEP_LIMIT = 5_000
"""Entries relayed by one sweep: what a task can do well within its time-out."""

PAGE = 50
"""Entries that share a task when many are relayed at once: django-q2 takes longer over a task than over its work."""

NEVER_ENDS = gettext_noop("Every run was cut by TASK_TIMEOUT_SECONDS, or ended its worker.")
_uncounted: list[int] = []
"""Entries with a counted run that ended through no fault, for as long as `default` cannot take note of it."""

_relayer = BoundedCaller("outbox-relay")
_rest_until = 0.0
_is_silent = ContextVar("outbox_is_silent", default=False)


class InTurn(Exception):
    """A run must wait until another is over: the entry stays open, its task comes again, and no attempt is counted."""


class GivenUp(Exception):
    """An entry of the task is given up, in this run or before it: the run failed, and the task need not come again.

    Says why, as the entry's last error does.
    """


def enqueue(task: str, *args: Any, key: uuid.UUID | None = None) -> bool:
    """Promise that the task runs after this transaction has committed, however often anything dies.

    `task` is a name of settings.TASKS, `args` are plain JSON values. Needs an open atomic() on `default`. False, and
    nothing written, when an entry with this key exists already: the same fact is promised once.
    """
    return enqueue_many(task, [(key or uuid.uuid4(), args)]) == 1


def enqueue_many(task: str, rows: Iterable[tuple[uuid.UUID, Sequence[Any]]]) -> int:
    """`enqueue` for many entries in one statement; returns how many were new."""
    if not connections[DEFAULT_DB_ALIAS].in_atomic_block:
        raise transaction.TransactionManagementError(
            "enqueue() belongs inside the transaction of the change it follows."
        )
    if task not in settings.TASKS:
        raise ValueError(f"{task!r} is not a name of settings.TASKS.")
    if _is_silent.get():
        return 0
    rows = list(rows)
    new = OutboxEntry.objects.add(task, rows) if rows else []
    if new:
        transaction.on_commit(lambda: _committed(task, new), using=DEFAULT_DB_ALIAS, robust=True)
    return len(new)


def _committed(task: str, keys: Sequence[uuid.UUID]) -> None:
    for key in keys[:PAGE]:
        with logs.about(event_key=key):
            logger.info("Promised %s", task)
    if len(keys) > PAGE:
        logger.info("Promised %s %d times more", task, len(keys) - PAGE)
    relay_now(task, keys)


@contextmanager
def silence() -> Iterator[None]:
    """Within it enqueue() promises nothing: for changes that re-tell the past, such as those of a demo."""
    token = _is_silent.set(True)
    try:
        yield
    finally:
        _is_silent.reset(token)


def relay_now(task: str, keys: Sequence[uuid.UUID]) -> None:
    """The fast path after a commit: never raises, never takes longer than OUTBOX_FAST_PATH_SECONDS.

    After a failure it rests for OUTBOX_REST_SECONDS: while `jobs` is down or hangs, requests do not even try.
    """
    global _rest_until
    if time.monotonic() < _rest_until or _relayer.stuck:
        return
    try:
        if settings.OUTBOX_FAST_PATH_SECONDS:
            _relayer.call(lambda: _enqueue_tasks(task, keys), seconds=settings.OUTBOX_FAST_PATH_SECONDS)
        else:
            _enqueue_tasks(task, keys)
        OutboxEntry.objects.mark_relayed(keys)
    except Exception as error:
        _rest_until = time.monotonic() + settings.OUTBOX_REST_SECONDS
        why = clean(repr(error), 200) if is_outage(error) else told(error)
        logger.warning("The fast path rests, the sweep will relay: %s", why)


def sweep() -> dict[str, int]:
    """Relay what the fast path missed; run by a schedule each minute, by any number of clusters at once.

    An entry relayed twice is performed twice at worst, which every later step survives. One that was relayed and never
    done gets a task of its own: it may have shared one with an entry that ends its worker.
    """
    due = OutboxEntry.objects.due().values_list("task", "relayed_at", "key")[:SWEEP_LIMIT]
    keys_by_kind: dict[tuple[str, int], list[uuid.UUID]] = {}
    for task, relayed_at, key in due:
        keys_by_kind.setdefault((task, 1 if relayed_at else PAGE), []).append(key)
    for (task, page), keys in keys_by_kind.items():
        for start in range(0, len(keys), 500):
            _enqueue_tasks(task, keys[start : start + 500], page)
            OutboxEntry.objects.mark_relayed(keys[start : start + 500])
    return {"relayed": sum(map(len, keys_by_kind.values()))}


def perform(*keys: str) -> dict[str, Any]:
    """Run the tasks of the entries: what django-q2 calls. At least once; a done entry is left alone.

    An outage of a database raises, as InTurn does, and django-q2 tries again without end; so does one that the cluster
    makes of a long wait. A fault of a task's own raises too, after the other entries had their turn, until it has
    happened TASK_MAX_ATTEMPTS times: then its entry is given up, visibly, with its last error. So is one whose runs
    never ended, in as many as came later than a task may take (`_is_late`): it was cut by its time-out, or ended its
    worker. With nothing left to try again, and an entry given up, the run raises GivenUp: it failed, and is over.
    """
    try:
        _take_back_counts()
        return _perform_each(keys)
    finally:
        with patience.limited_to(settings.Q_CLUSTER["timeout"] / 8), suppress(DatabaseError, InterfaceError):
            _take_back_counts()


def _perform_each(keys: Sequence[str]) -> dict[str, Any]:
    results: list[dict[str, Any]] = []
    faults: list[Exception] = []
    for key in keys:
        try:
            with logs.about(event_key=key):
                results.append(_perform(key, is_first=not faults and all("skipped" in each for each in results)))
        except Exception as error:
            if is_outage(error):
                raise
            faults.append(error)
    if faults:
        raise faults[0]
    for result in results:
        if "given_up" in result:
            raise GivenUp(result["given_up"])
    return results[0] if len(results) == 1 else {"entries": len(results)}


def prune(days: int = 30) -> dict[str, int]:
    """Delete entries done or let be more than `days` ago; run by a schedule each hour. Open and given-up ones stay."""
    over = OutboxEntry.objects.filter(done_at__lt=Now() - timedelta(days=days))
    return {"pruned": pruning.delete(over, "done_at")}


def _enqueue_tasks(task: str, keys: Sequence[uuid.UUID], page: int | None = None) -> None:
    page = page or PAGE
    for start in range(0, len(keys), page):
        together = [str(key) for key in keys[start : start + page]]
        name = f"{task} {together[0]}" if len(together) == 1 else f"{task} of {len(together)} entries"
        async_task("stega.outbox.perform", *together, task_name=name[:100])


def _perform(key: str, *, is_first: bool) -> dict[str, Any]:
    entry: Any = OutboxEntry.objects.filter(key=key).annotate(is_late=_is_late()).first()
    if entry is None or entry.done_at:
        return {"skipped": "done or let be before" if entry else "no such entry"}
    if entry.failed_at:
        return {"skipped": "given up before", "given_up": entry.last_error}
    entry.is_counted = entry.is_late and is_first
    if not entry.is_counted:
        return _run(entry)
    _reach_databases()
    if entry.attempts >= settings.TASK_MAX_ATTEMPTS:
        return _give_up_unended(entry)
    with _alone_at_last(entry), _counted(entry):
        return _run(entry)


@contextmanager
def _counted(entry: Any) -> Iterator[None]:
    """A run that is counted before it begins. One that ends well, or through no fault, is not counted in the end."""
    try:
        OutboxEntry.objects.filter(pk=entry.pk).update(attempts=F("attempts") + 1)
        yield
    except Exception as error:
        if _is_no_fault(error):
            _uncounted.append(entry.pk)
        raise


def _take_back_counts() -> None:
    """What cannot be written down now is tried again with this worker's next task."""
    while _uncounted:
        connections[DEFAULT_DB_ALIAS].close_if_unusable_or_obsolete()
        OutboxEntry.objects.filter(pk=_uncounted[-1], attempts__gt=0).update(attempts=F("attempts") - 1)
        _uncounted.pop()


def _run(entry: Any) -> dict[str, Any]:
    try:
        result: dict[str, Any] = _function(entry.task)(*entry.args, event_key=entry.key)
    except Exception as error:
        if _is_no_fault(error) or not _give_up(entry, error):
            raise
        return {"given_up": told(error)}
    attempts = Greatest(F("attempts") - (1 if entry.is_counted else 0), 0)
    OutboxEntry.objects.filter(pk=entry.pk).update(done_at=Now(), failed_at=None, attempts=attempts)
    logger.info("Task %s is done", entry.task)
    return result


def _is_no_fault(error: Exception) -> bool:
    return isinstance(error, InTurn) or is_outage(error)


def _is_late() -> Any:
    """Whether an entry was relayed longer ago than a run may take: one may have been cut, or there was a backlog.

    The run of a late entry is counted before it begins, since the entry may be what ends its workers. It may also be
    cut for another's sake. So only the first run of a task is counted, for the others may have had too little time
    left; only while all databases answer, for a worker that waits for one is cut there, uncounted; and the last run
    that is allowed is made alone, for an entry that kills its worker takes those down that work beside it.
    """
    longest = timedelta(seconds=settings.Q_CLUSTER["timeout"])
    return ExpressionWrapper(Q(relayed_at__lt=Now() - longest), output_field=BooleanField())


def _reach_databases() -> None:
    for alias in settings.DATABASES:
        with connections[alias].cursor() as cursor:
            cursor.execute("select 1")


@contextmanager
def _alone_at_last(entry: Any) -> Iterator[None]:
    """Within it no other entry makes its last run; raises InTurn when one does. Gone with the worker.

    The lock is that of a transaction on a connection beside, which is open as long: a pooler would keep a session's.
    """
    if entry.attempts < settings.TASK_MAX_ATTEMPTS - 1:
        yield
        return
    with closing(connections["events"].copy()) as beside:
        beside.set_autocommit(False)
        with beside.cursor() as cursor:
            cursor.execute("select pg_try_advisory_xact_lock(hashtext('stega last run'))")
            (is_alone,) = cursor.fetchone()
        if not is_alone:
            raise InTurn(f"{entry.task} {entry.key} waits until another entry has made its last run")
        yield


def _give_up_unended(entry: Any) -> dict[str, Any]:
    _say_given_up(entry, NEVER_ENDS)
    OutboxEntry.objects.filter(pk=entry.pk).update(failed_at=Now(), last_error=entry.last_error or NEVER_ENDS)
    return {"given_up": NEVER_ENDS}


def _function(task: str) -> Callable[..., dict[str, Any]]:
    function: Callable[..., dict[str, Any]] = import_string(settings.TASKS[task])
    return function


def _give_up(entry: Any, error: Exception) -> bool:
    """Count a fault of the task's own; true when it was the last one allowed."""
    logger.error("Task %s of entry %s failed\n%s", entry.task, entry.key, trace(error))
    entries = OutboxEntry.objects.filter(pk=entry.pk)
    entries.update(attempts=F("attempts") + (0 if entry.is_counted else 1), last_error=told(error))
    is_over = entries.filter(attempts__gte=settings.TASK_MAX_ATTEMPTS).update(failed_at=Now())
    if is_over:
        _say_given_up(entry, told(error))
    return bool(is_over)


def _say_given_up(entry: Any, why: str) -> None:
    logger.error("Task %s of entry %s given up: %s", entry.task, entry.key, why)

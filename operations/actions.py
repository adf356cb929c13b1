"""What operators do. A request is one transaction on `default`: the record of it and its outbox entry.

To ask, `default` must answer. The work is then a task's: nobody waits for it, outages only delay it, and done twice it
does nothing more. See `operations.performing`.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction

from accounts.models import User
from operations.models import TASK, Kind, OperatorAction
from operations.targets import TARGETS, Extent
from stega import outbox


class Gone(Exception):
    """There is nothing left that the action could be done to."""


class NotPromised(Exception):
    """The outbox took no entry for the action, so there is no action either."""


class TakenAlready(Exception):
    """The same thing is being done: by this request sent twice, or by another operator."""

    def __init__(self, action: OperatorAction) -> None:
        super().__init__(str(action))
        self.action = action


def request(
    actor: User, kind: Kind, target: Mapping[str, Any], extent: Extent, *, reason: str, key: uuid.UUID
) -> OperatorAction:
    """Record what the operator asks for and promise that it is done; both or neither.

    `extent` is what a count of this moment found; what it tells about the target is recorded with it. `key` comes with
    the confirmed form, so that sending it twice asks once; with another kind or target it is another key. Raises
    PermissionDenied, Gone, NotPromised, TakenAlready with the action that is there, and ValueError for a target that
    names nothing.
    """
    if not actor.has_perm("operations.operate_console"):
        raise PermissionDenied
    target = TARGETS[kind].named(target)
    key = key_of(kind, target, key)
    taken = OperatorAction.objects.filter(key=key).first()
    if taken:
        raise TakenAlready(taken)
    if not extent.count:
        raise Gone
    target = {**extent.about, **target}
    record = OperatorAction(
        key=key, kind=kind, actor=actor, target=target, count=extent.count, up_to=extent.up_to, reason=reason
    )
    action = _written(record)
    action.refresh_from_db()
    return action


def key_of(kind: Kind, target: Mapping[str, str], form_key: uuid.UUID) -> uuid.UUID:
    """The key of an action: the form's key, for this kind and target alone."""
    return uuid.uuid5(form_key, f"{kind.value} {json.dumps(target, sort_keys=True)}")


def _written(action: OperatorAction, tries: int = 3) -> OperatorAction:
    """Write it with its outbox entry; again when its number was taken meanwhile, or the same that was open is over."""
    try:
        with transaction.atomic(using="default"):
            action.save(force_insert=True)
            if not outbox.enqueue(TASK, action.pk, key=action.promise_key()):
                raise NotPromised
    except IntegrityError:
        if same := _taken(action.kind, action.target, action.key):
            raise TakenAlready(same) from None
        if tries == 1:
            raise
        action.pk = None
        return _written(action, tries - 1)
    return action


def _taken(kind: str, target: Mapping[str, str], key: uuid.UUID) -> OperatorAction | None:
    """The action that this one would be done beside."""
    open_ones = OperatorAction.objects.open().filter(kind=kind, target=target)
    return OperatorAction.objects.filter(key=key).first() or open_ones.first()

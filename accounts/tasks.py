import uuid
from typing import Any

from django.contrib.sessions.models import Session
from django.db.models.functions import Now

from accounts.models import User
from stega.database import pruning
from stega.pgque.publishing import event_key as key_of
from stega.pgque.publishing import publish


def prune_sessions() -> dict[str, int]:
    """Delete the sessions that are over; run by a schedule each hour. Who signs out takes theirs along."""
    return {"pruned": pruning.delete(Session.objects.filter(expire_date__lt=Now()), "expire_date")}


def send_welcome_notification(user_id: int, *, event_key: uuid.UUID | None = None) -> dict[str, Any]:
    """Publish `ticket.welcome` for a user. Running it again publishes under the same key: the user is told once."""
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        return {"skipped": "user not found"}
    payload = {"user_id": user.pk, "email": user.email, "display_name": str(user)}
    publish("ticket.welcome", payload, event_key or key_of("ticket.welcome", user.pk))
    return {"notified": user.email}

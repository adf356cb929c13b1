import uuid
from typing import Any

from accounts.models import User
from stega.pgque.publishing import event_key as key_of
from stega.pgque.publishing import publish


def send_welcome_notification(user_id: int, *, event_key: uuid.UUID | None = None) -> dict[str, Any]:
    """Publish `ticket.welcome` for a user. Running it again publishes under the same key: the user is told once."""
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        return {"skipped": "user not found"}
    payload = {"user_id": user.pk, "email": user.email, "display_name": str(user)}
    publish("ticket.welcome", payload, event_key or key_of("ticket.welcome", user.pk))
    return {"notified": user.email}

from datetime import datetime

from django.conf import settings
from django.contrib.auth import login
from django.db import transaction
from django.db.models import Case, F, Value, When
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import get_language

from accounts.models import User
from stega import outbox
from stega.pgque.publishing import event_key


def sign_in(request: HttpRequest, user: User) -> None:
    """Start the session of a user whose password was checked: the only way in, also for the Django admin.

    One transaction on `default`: the session, the first sign-in and the outbox entry of the welcome stand or fall
    together.
    """
    with transaction.atomic(using="default"):
        login(request, user)
        record_first_sign_in(user, timezone.now(), language=get_language() or settings.LANGUAGE_CODE)


def record_first_sign_in(user: User, now: datetime, *, language: str = "") -> bool:
    """Record the first sign-in and enqueue the welcome; True for the one call that did it.

    One transaction on `default`. The conditional update lets one of several simultaneous sign-ins through, so each
    user is welcomed exactly once. A user without a language gets `language`: the one the browser asked for.
    """
    with transaction.atomic(using="default"):
        first = User.objects.filter(pk=user.pk, first_signed_in_at=None).update(
            first_signed_in_at=now,
            language=Case(When(language="", then=Value(language)), default=F("language")),
        )
        if first:
            outbox.enqueue("send_welcome_notification", user.pk, key=event_key("ticket.welcome", user.pk))
    return bool(first)

"""The door to the pages: what a database that is away or hangs may cost a request, and what people then read."""

import sys
import threading
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.signals import got_request_exception
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation

from stega.database import patience
from stega.database.outages import is_outage

VAIN_SECONDS = 0.5
"""When everybody inside waits for a database and none has had an answer for this long, nobody waits for a place."""
RETRY_SECONDS = 10
OUTAGE = "stega.outage"


class Hall:
    """The requests that are being answered: at most `places` at once, so that a thread is left for the probes."""

    def __init__(self) -> None:
        self.places: int | None = None
        """None: as many as come."""
        self._inside = 0
        self._changed = threading.Condition()

    def enter(self) -> bool:
        """Wait for a place; False when everybody inside waits in vain."""
        with self._changed:
            while self.places is not None and self._inside >= self.places:
                if patience.waits.are_vain(self.places, VAIN_SECONDS):
                    return False
                self._changed.wait(VAIN_SECONDS / 5)
            self._inside += 1
        return True

    def leave(self) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify()


hall = Hall()


class Door:
    """Lets a request wait STEGA_REQUEST_DATABASE_SECONDS for its databases, and turns an outage into a plain 503.

    Stands before everything that asks a database; /livez and its kin, and static files, are answered before it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not hall.enter():
            return _sorry(request)
        try:
            with patience.limited_to(settings.STEGA_REQUEST_DATABASE_SECONDS):
                response = self.get_response(request)
        finally:
            hall.leave()
        return _sorry(request) if OUTAGE in request.META else response


@receiver(got_request_exception, dispatch_uid="stega.web.door")
def _note_outage(request: HttpRequest | None = None, **_: Any) -> None:
    error = sys.exc_info()[1]
    if request is not None and error is not None and is_outage(error):
        request.META[OUTAGE] = True


def _sorry(request: HttpRequest) -> HttpResponse:
    """503 in the reader's language, as far as it is known without a database.

    The staff's pages need no other database than `default` to be shown: theirs names it. It is told by the address,
    since nobody can say who is asking.
    """
    language = getattr(request, "LANGUAGE_CODE", None) or translation.get_language_from_request(request)
    with translation.override(language):
        is_of_staff = request.path.startswith(reverse("admin:index"))
        text = render_to_string("503_staff.html" if is_of_staff else "503.html")
    headers = {"Retry-After": str(RETRY_SECONDS), "Content-Language": language}
    return HttpResponse(text, status=503, headers=headers)

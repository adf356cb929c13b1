import zoneinfo
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation


class UserPreferencesMiddleware:
    """Answer in the language and the time zone of the user; without a user, in those of the browser and the site.

    Stands after LocaleMiddleware, whose choice it replaces, and after AuthenticationMiddleware.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        language = getattr(request.user, "language", "")
        if language:
            translation.activate(language)
            request.LANGUAGE_CODE = translation.get_language()
        with timezone.override(time_zone(getattr(request.user, "time_zone", ""))):
            return self.get_response(request)


def time_zone(name: str) -> zoneinfo.ZoneInfo | None:
    """The zone of that name, or None (the site's) for a name this machine does not know."""
    try:
        return zoneinfo.ZoneInfo(name) if name else None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return None

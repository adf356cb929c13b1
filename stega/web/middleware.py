"""What holds for every request, and for every answer."""

import codecs
import re
import uuid
from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.cache import add_never_cache_headers

from stega import logs

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class NameRequest:
    """Gives each request an id, that of the proxy before us when it brings one: in every log line, and in the answer.

    The first of all, so that it names what the others refuse.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        name = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        logs.begin(request_id=name)
        response = self.get_response(request)
        response["X-Request-ID"] = name
        return response


class StoreNothing:
    """Pages are for the person who asked: neither the browser nor anything on the way keeps one.

    Else who has signed out is shown them again with the browser's Back. Static files do not come by here.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        add_never_cache_headers(response)
        return response


class RefuseWhatIsNoText:
    """Takes requests in UTF-8 alone, and none with a NUL in its path or cookies.

    A browser sends what the page says, and ours say UTF-8; other charsets bring halves of characters to the database.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        charset, request.encoding = request.encoding, "utf-8"
        if charset and codecs.lookup(charset).name != "utf-8":
            raise BadRequest("The request is not in UTF-8.")
        if "\x00" in request.path:
            raise Http404
        request.COOKIES = {name: value for name, value in request.COOKIES.items() if "\x00" not in value}
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """A value in the address that no form stood before and the database cannot take: the request's fault.

        The admin's filters and addresses pass on what they are given.
        """
        of_admin = isinstance(exception, ValueError) and request.path.startswith(reverse("admin:index"))
        if request.method in ("GET", "HEAD") and (of_admin or isinstance(exception, (DataError, OverflowError))):
            raise BadRequest("The address holds a value that is none.") from exception

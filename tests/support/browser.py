"""A person at a browser, as far as HTTP goes: cookies, forms, redirects."""

import re
import urllib.parse
import urllib.request
from dataclasses import dataclass
from http.cookiejar import CookieJar
from urllib.error import HTTPError


@dataclass(frozen=True)
class Page:
    status: int
    url: str
    text: str


class Browser:
    """Keeps cookies and sends the CSRF token of the page that holds the form."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def get(self, path: str) -> Page:
        return self._open(urllib.request.Request(urllib.parse.urljoin(self.base, path)))

    def post(self, path: str, *, form_at: str | None = None, **fields: object) -> Page:
        """Post the fields to `path` with the token of the form at `form_at` (default: at `path`)."""
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.get(form_at or path).text)
        data = {**fields, "csrfmiddlewaretoken": token.group(1) if token else ""}
        url = urllib.parse.urljoin(self.base, path)
        return self._open(urllib.request.Request(url, urllib.parse.urlencode(data).encode(), {"Referer": url}))

    def sign_in(self, username: str, password: str) -> Page:
        return self.post("/accounts/login/", username=username, password=password)

    def _open(self, request: urllib.request.Request) -> Page:
        try:
            with self._opener.open(request, timeout=20) as response:
                return Page(response.status, response.url, response.read().decode())
        except HTTPError as error:
            with error:
                return Page(error.code, error.url or "", error.read().decode(errors="replace"))

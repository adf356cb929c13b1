"""Somebody at a browser, and what went wrong on the pages they saw."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response

from accounts.models import User
from tests.factories import PASSWORD

PHONE, DESK = 375, 1280
"""Widths of a screen in CSS pixels."""

_OF_A_REFUSED_PAGE = "Failed to load resource"  # what Chromium logs of every page whose status is 400 or more


@dataclass
class Visitor:
    """A browser with cookies of its own. `faults` is what no page may ever do, as sentences."""

    page: Page
    site: str
    faults: list[str] = field(default_factory=list)

    @classmethod
    @contextmanager
    def at(
        cls,
        chromium: Browser,
        site: str,
        *,
        language: str = "en",
        scheme: str = "light",
        width: int = DESK,
        javascript: bool = True,
    ) -> Iterator["Visitor"]:
        """Come with a screen of this width, set to this language and colour scheme."""
        context = chromium.new_context(
            base_url=site,
            locale={"pt-br": "pt-BR"}.get(language, language),
            color_scheme=scheme,
            viewport={"width": width, "height": 800},
            java_script_enabled=javascript,
            reduced_motion="reduce",
        )
        context.set_default_timeout(15_000)
        visitor = cls(context.new_page(), site)
        visitor._watch()
        yield visitor
        context.close()

    def sign_in(self, user: User, password: str = PASSWORD) -> None:
        self.page.goto("/accounts/login/")
        self.page.locator("[name=username]").fill(user.username)
        self.page.locator("[name=password]").fill(password)
        self.page.locator("main button").click()
        self.page.wait_for_url(lambda url: "/login/" not in url)

    def _watch(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.faults.append(f"{self.page.url}: {error}"))
        self.page.on("request", self._look_at_request)
        self.page.on("response", self._look_at_response)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and _OF_A_REFUSED_PAGE not in message.text:
            self.faults.append(f"{self.page.url} logs: {message.text}")

    def _look_at_request(self, request: Request) -> None:
        if not request.url.startswith(("data:", "blob:")) and f"//{urlsplit(request.url).netloc}" not in self.site:
            self.faults.append(f"{self.page.url} asks {request.url}")

    def _look_at_response(self, response: Response) -> None:
        if response.status >= 400 and response.request.resource_type != "document":
            self.faults.append(f"{self.page.url} lacks {response.url}: {response.status}")

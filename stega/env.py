"""Typed readers of the environment: the one place that reads it. A bad value is refused with the variable's name."""

import math
import os
from email.utils import parseaddr
from typing import Any
from urllib.parse import SplitResult, urlsplit
from zoneinfo import available_timezones

import dj_database_url
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


def text(name: str, default: str = "") -> str:
    """The value without surrounding blanks; `default` when it is not set or empty."""
    return os.environ.get(name, "").strip() or default


def boolean(name: str, default: bool) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    if value.strip().lower() in _TRUE:
        return True
    if value.strip().lower() in _FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}.")


def integer(name: str, default: int, *, minimum: int = 0, maximum: int = 2**31 - 1) -> int:
    value = text(name)
    try:
        number = int(value) if value else default
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from None
    if not minimum <= number <= maximum:
        raise ImproperlyConfigured(f"{name} must be between {minimum} and {maximum}, not {number}.")
    return number


def seconds(name: str, default: float, *, minimum: float = 0.001) -> float:
    """A duration in seconds, finite and at least `minimum`."""
    value = text(name)
    try:
        number = float(value) if value else default
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number of seconds, not {value!r}.") from None
    if not math.isfinite(number) or number < minimum:
        raise ImproperlyConfigured(f"{name} must be at least {minimum} seconds, not {value!r}.")
    return number


def items(name: str, default: str = "") -> list[str]:
    """A list separated by commas; blanks around an item are dropped, empty items too."""
    return [item.strip() for item in text(name, default).split(",") if item.strip()]


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = text(name, default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")
    return value


def web_address(name: str, default: str) -> SplitResult:
    """An http or https address of a site: scheme, host and port."""
    value = text(name, default)
    try:
        address = urlsplit(value)
        port = address.port
    except ValueError:
        address, port = urlsplit(""), None
    if address.scheme not in ("http", "https") or not address.hostname or port == 0:
        raise ImproperlyConfigured(f"{name} must be a web address such as https://help.example.com, not {value!r}.")
    return address


def mail_address(name: str, default: str) -> str:
    """An e-mail address, alone or as `Name <address>`."""
    value = text(name, default)
    try:
        validate_email(parseaddr(value)[1].replace("@localhost", "@localhost.example"))
    except ValidationError:
        raise ImproperlyConfigured(f"{name} must be an e-mail address, not {value!r}.") from None
    return value


def time_zone(name: str, default: str) -> str:
    value = text(name, default)
    if value not in available_timezones():
        raise ImproperlyConfigured(f"{name} must be a time zone such as America/Sao_Paulo, not {value!r}.")
    return value


def secret(name: str, *, development: str, debug: bool) -> str:
    """A secret that production must bring itself; the message never shows the value."""
    value = text(name)
    if value:
        return value
    if debug:
        return development
    raise ImproperlyConfigured(f"{name} is not set. Production needs its own secret: set {name} to a long random text.")


def database(name: str) -> dict[str, Any] | None:
    """The database that the variable names, None when it is not set."""
    url = text(name)
    return parse_database(name, url) if url else None


def parse_database(name: str, url: str) -> dict[str, Any]:
    """A `postgresql://` URL as Django wants it. A refusal never repeats the URL: it may hold a password."""
    example = f"Write {name} as postgresql://user:password@host:5432/database."
    try:
        scheme = urlsplit(url).scheme
        parsed: dict[str, Any] = dict(dj_database_url.parse(url))
    except (ValueError, KeyError):
        raise ImproperlyConfigured(f"{name} is not a database URL. {example}") from None
    if scheme not in ("postgresql", "postgres"):
        raise ImproperlyConfigured(f"{name} does not name a PostgreSQL database. {example}")
    if not parsed.get("NAME"):
        raise ImproperlyConfigured(f"{name} names no database. {example}")
    return parsed

"""Which addresses may be a product's Slack webhook, and how to show one without giving the secret away."""

from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def validate_slack_webhook_url(value: str) -> None:
    """Accept https addresses, and with DEBUG also http on this machine (the development inbox)."""
    try:
        url = urlsplit(value)
        host, _port = url.hostname, url.port
    except ValueError:
        raise ValidationError(_("Enter a valid address."), code="invalid") from None
    if not host or url.username is not None or any(character.isspace() for character in value):
        raise ValidationError(_("Enter a valid address."), code="invalid")
    if url.scheme == "https" or (settings.DEBUG and url.scheme == "http" and host in LOOPBACK):
        return
    raise ValidationError(_("The address must start with https://."), code="insecure")


def masked(value: str) -> str:
    """The host and nothing of the path, which is the secret."""
    return f"{urlsplit(value).scheme}://{urlsplit(value).netloc}/…" if value else ""

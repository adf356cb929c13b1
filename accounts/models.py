import zoneinfo
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.roles import Role
from stega.wording.fields import Line

__all__ = ["Role", "User"]


# Of the IANA time zone database.
REGIONS = {
    "Africa",
    "America",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Europe",
    "Indian",
    "Pacific",
}


def language_choices() -> list[tuple[str, str]]:
    return list(settings.LANGUAGES)


@cache
def time_zone_choices() -> list[tuple[str, str]]:
    """The zones named after a place, and UTC: no abbreviations, no offsets, no former names of countries.

    Looked up once: it means walking through the folders of the time zone database.
    """
    names = (name for name in zoneinfo.available_timezones() if name == "UTC" or name.partition("/")[0] in REGIONS)
    return [(name, name.replace("_", " ")) for name in sorted(names)]


class User(AbstractUser):
    """A person who signs in.

    The username is the identity. The e-mail address is only where mail goes, so it is required but not unique: it
    may change, and a team may share one mailbox.
    """

    first_name = None  # type: ignore[assignment]  # Django's way to leave a parent's field out
    last_name = None  # type: ignore[assignment]  # as above

    email = models.EmailField(_("e-mail address"))
    role = models.CharField(
        _("role"),
        max_length=10,
        choices=[(role.value, role.label) for role in Role],
        default=Role.CUSTOMER.value,
    )
    display_name = Line(_("display name"), max_length=150, blank=True, help_text=_("The username when left empty."))
    language = models.CharField(
        _("language"),
        max_length=10,
        blank=True,
        choices=language_choices,
        help_text=_("Taken from the browser at the first sign-in when left empty."),
    )
    time_zone = models.CharField(
        _("time zone"),
        max_length=64,
        blank=True,
        choices=time_zone_choices,
        help_text=_("The time zone of the installation when left empty."),
    )
    first_signed_in_at = models.DateTimeField(_("first signed in at"), null=True, blank=True, editable=False)

    class Meta(AbstractUser.Meta):
        constraints = [
            models.CheckConstraint(
                name="accounts_user_role", condition=models.Q(role__in=[role.value for role in Role])
            ),
        ]

    def __str__(self) -> str:
        return self.display_name or self.username

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save with a display name, since mails and pages always show one."""
        self.display_name = self.display_name or self.username
        super().save(*args, **kwargs)

    def get_full_name(self) -> str:
        return str(self)

    def get_short_name(self) -> str:
        return str(self)

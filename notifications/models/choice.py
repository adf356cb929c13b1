"""What people chose not to be told. No row means: tell me."""

from __future__ import annotations

from collections.abc import Collection

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from notifications.kinds import KIND_OF, SILENCED_BY_MUTING, Kind

UNWANTED = gettext_noop("The user does not want this kind of mail")
MUTED = gettext_noop("The user muted the ticket")


class UnwantedKind(models.Model):
    """One kind of mail that a person does without."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", verbose_name=_("user"))
    kind = models.CharField(_("kind of mail"), max_length=20, choices=Kind.choices)

    class Meta:
        verbose_name = _("unwanted kind of mail")
        verbose_name_plural = _("unwanted kinds of mail")
        constraints = [models.UniqueConstraint(fields=["user", "kind"], name="unwanted_kind_once")]

    def __str__(self) -> str:
        return f"{self.user_id} {self.kind}"


class MutedTicket(models.Model):
    """One ticket whose small talk a person does without."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", verbose_name=_("user"))
    # Not a foreign key: this app learns about tickets from events alone.
    ticket_id = models.BigIntegerField(_("ticket"))

    class Meta:
        verbose_name = _("muted ticket")
        verbose_name_plural = _("muted tickets")
        constraints = [models.UniqueConstraint(fields=["user", "ticket_id"], name="muted_ticket_once")]

    def __str__(self) -> str:
        return f"{self.user_id} #{self.ticket_id}"


def reasons_to_skip(event_type: str, ticket_id: int | None, users: Collection[int]) -> dict[int, str]:
    """Why which of the users (by id) chose not to be told of the event: a msgid each. Read now, one query or two."""
    kind = KIND_OF.get(event_type)
    if kind is None or not users:
        return {}
    reasons = {}
    if kind in SILENCED_BY_MUTING and ticket_id is not None:
        muted = MutedTicket.objects.filter(user__in=users, ticket_id=ticket_id)
        reasons = dict.fromkeys(muted.values_list("user_id", flat=True), MUTED)
    unwanted = UnwantedKind.objects.filter(user__in=users, kind=kind)
    return reasons | dict.fromkeys(unwanted.values_list("user_id", flat=True), UNWANTED)

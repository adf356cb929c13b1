"""The three roles, free of the database so that pure rules can name them."""

from enum import StrEnum

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Role(StrEnum):
    CUSTOMER = "customer"
    AGENT = "agent"
    ADMIN = "admin"

    @property
    def label(self) -> str | Promise:
        return _LABELS[self]


_LABELS: dict[Role, str | Promise] = {
    Role.CUSTOMER: _("customer"),
    Role.AGENT: _("agent"),
    Role.ADMIN: _("admin"),
}

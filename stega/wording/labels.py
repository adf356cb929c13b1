"""What people read for a status or a priority: one word each, on pages, in mails and in posts."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

STATUS: Mapping[str, str | Promise] = {
    "open": _("Open"),
    "in_progress": _("In progress"),
    "waiting": _("Waiting for customer"),
    "resolved": _("Resolved"),
    "closed": _("Closed"),
}

PRIORITY: Mapping[str, str | Promise] = {
    "low": _("Low"),
    "medium": _("Medium"),
    "high": _("High"),
    "critical": _("Critical"),
}

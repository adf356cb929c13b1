"""What kinds of mail there are, and which of them a person may do without."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Kind(models.TextChoices):
    """What a person may switch off. Not here: the welcome, and breached SLAs, which are somebody's duty."""

    ASSIGNMENT = "assignment", _("Tickets assigned to you")
    STATUS = "status", _("A new status of your tickets")
    COMMENT = "comment", _("Comments on your tickets")
    REPORT = "report", _("The weekly report")


KIND_OF = {
    "ticket.assigned": Kind.ASSIGNMENT,
    "ticket.status_changed": Kind.STATUS,
    "ticket.resolved": Kind.STATUS,
    "ticket.comment_added": Kind.COMMENT,
    "report.weekly_ready": Kind.REPORT,
}
"""Event type -> kind; a type that is not here is always told."""

SILENCED_BY_MUTING = {Kind.STATUS, Kind.COMMENT}
"""Muting a ticket ends its small talk: who gets it assigned, or lets its SLA pass, is told all the same."""

from __future__ import annotations

import json
from datetime import UTC
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import connections, models
from django.db.models.functions import Lower
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.roles import Role
from stega.wording.fields import Line, Text
from tickets.sla import DEFAULT_MINUTES, Priority
from tickets.slack_webhook import validate_slack_webhook_url
from tickets.workflow import RUNNING, Status

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from django_stubs_ext import StrOrPromise

    from accounts.models import User

TITLE_LENGTH = 200
BODY_LENGTH = 20_000
YEAR_IN_MINUTES = 365 * 24 * 60


def sla_minutes(priority: Priority, verbose_name: StrOrPromise) -> models.PositiveIntegerField[int, int]:
    return models.PositiveIntegerField(
        verbose_name,
        default=DEFAULT_MINUTES[priority],
        validators=[MinValueValidator(1), MaxValueValidator(YEAR_IN_MINUTES)],
        help_text=_("Minutes from opening. A change counts for tickets opened or reprioritised after it."),
    )


def once_per_form(name: str) -> models.UniqueConstraint:
    """A form that its author sends twice makes one row."""
    return models.UniqueConstraint(fields=["author", "form_key"], name=name, condition=models.Q(form_key__isnull=False))


class Product(models.Model):
    name = Line(_("name"), max_length=100)
    slug = models.SlugField(_("slug"), max_length=100, unique=True)
    description = Text(_("description"), max_length=2_000, blank=True)
    is_active = models.BooleanField(_("active"), default=True, help_text=_("Only active products take new tickets."))
    sla_critical_minutes = sla_minutes(Priority.CRITICAL, _("SLA for critical"))
    sla_high_minutes = sla_minutes(Priority.HIGH, _("SLA for high"))
    sla_medium_minutes = sla_minutes(Priority.MEDIUM, _("SLA for medium"))
    sla_low_minutes = sla_minutes(Priority.LOW, _("SLA for low"))
    slack_webhook_url = models.CharField(
        _("Slack webhook"),
        max_length=500,
        blank=True,
        validators=[validate_slack_webhook_url],
        help_text=_("A secret: whoever knows it can post to the channel."),
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("product")
        verbose_name_plural = _("products")
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="tickets_product_name",
                violation_error_message=_("A product with this name exists already."),
            ),
            models.CheckConstraint(
                name="tickets_product_sla_minutes",
                condition=models.Q(
                    sla_critical_minutes__gte=1,
                    sla_high_minutes__gte=1,
                    sla_medium_minutes__gte=1,
                    sla_low_minutes__gte=1,
                ),
            ),
        ]

    def __str__(self) -> str:
        return str(self.name)

    @property
    def sla_policy(self) -> dict[Priority, int]:
        """Minutes per priority, as tickets.sla takes them."""
        return {
            Priority.CRITICAL: self.sla_critical_minutes,
            Priority.HIGH: self.sla_high_minutes,
            Priority.MEDIUM: self.sla_medium_minutes,
            Priority.LOW: self.sla_low_minutes,
        }


class Breach(NamedTuple):
    ticket_id: int
    priority: str
    created_at: datetime
    due_at: datetime
    breached_at: datetime


BY_DEADLINE = (
    models.Case(models.When(~models.Q(status__in=[Status.RESOLVED.value, Status.CLOSED.value]), then="sla_due_at")).asc(
        nulls_last=True
    ),
    models.F("updated_at").desc(),
    models.F("id").desc(),
)


class TicketQuerySet(models.QuerySet["Ticket"]):
    def visible_to(self, user: User) -> TicketQuerySet:
        """The tickets a person may see, and the only place that decides it.

        Customers see their own; agents those that are unassigned or were ever assigned to them; admins all.
        """
        if not user.is_active:
            return self.none()
        if user.role == Role.ADMIN:
            return self
        if user.role == Role.AGENT:
            assignments = Ticket.assignees.through.objects.filter(ticket_id=models.OuterRef("pk"), user_id=user.pk)
            return self.filter(models.Q(assignee=None) | models.Q(assignee=user) | models.Exists(assignments))
        return self.filter(author=user)

    def by_deadline(self) -> TicketQuerySet:
        """Overdue ones first, then by the time that is left; resolved and closed ones last, newest change first."""
        return self.order_by(*BY_DEADLINE)

    def for_page(self) -> TicketQuerySet:
        return self.select_related("product", "author", "assignee")

    def mark_breached(self, limit: int) -> list[Breach]:
        """Record up to `limit` breaches in one statement, by the clock of the database.

        Raw SQL, because the ORM cannot lock, update and return in one statement. Several clusters may scan at once:
        each skips the rows the other has locked, and a row marked once no longer matches.
        """
        with connections[self.db].cursor() as cursor:
            cursor.execute(MARK_BREACHED, [list(RUNNING), limit])
            return [Breach(*row) for row in cursor.fetchall()]


MARK_BREACHED = """
with overdue as materialized (
    select id
    from tickets_ticket
    where status = any(%s) and sla_due_at <= now() and sla_breached_at is null
    order by sla_due_at
    limit %s
    for update skip locked
)
update tickets_ticket as ticket
set sla_breached_at = now()
from overdue
where ticket.id = overdue.id
returning ticket.id, ticket.priority, ticket.created_at, ticket.sla_due_at, ticket.sla_breached_at
"""


class Ticket(models.Model):
    product = models.ForeignKey(Product, models.PROTECT, verbose_name=_("product"), related_name="tickets")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, verbose_name=_("author"), related_name="+", db_index=False
    )
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        verbose_name=_("assignee"),
        related_name="+",
        null=True,
        blank=True,
        db_index=False,
    )
    assignees = models.ManyToManyField(
        settings.AUTH_USER_MODEL, verbose_name=_("everybody ever assigned"), related_name="+", blank=True
    )
    title = Line(_("title"), max_length=TITLE_LENGTH)
    body = Text(_("description"), max_length=BODY_LENGTH)
    status = models.CharField(
        _("status"),
        max_length=20,
        choices=[(status.value, status.label) for status in Status],
        default=Status.OPEN.value,
    )
    priority = models.CharField(
        _("priority"),
        max_length=20,
        choices=[(priority.value, priority.label) for priority in Priority],
        default=Priority.MEDIUM.value,
    )
    sla_due_at = models.DateTimeField(_("SLA due at"))
    sla_breached_at = models.DateTimeField(_("SLA breached at"), null=True, blank=True)
    resolved_at = models.DateTimeField(_("resolved at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))
    form_key = models.UUIDField(null=True, editable=False)

    objects = TicketQuerySet.as_manager()

    class Meta:
        verbose_name = _("ticket")
        verbose_name_plural = _("tickets")
        ordering = ["-updated_at", "-pk"]
        constraints = [
            models.CheckConstraint(
                name="tickets_ticket_status", condition=models.Q(status__in=[status.value for status in Status])
            ),
            models.CheckConstraint(
                name="tickets_ticket_priority",
                condition=models.Q(priority__in=[priority.value for priority in Priority]),
            ),
            once_per_form("tickets_ticket_once"),
        ]
        indexes = [
            # mark_breached(): stays as small as the set of tickets that can still breach.
            models.Index(
                fields=["sla_due_at"],
                name="tickets_ticket_breach_scan",
                condition=models.Q(status__in=[status.value for status in RUNNING], sla_breached_at=None),
            ),
            # TicketQuerySet.by_deadline(): the list of the staff, as it opens.
            models.Index(*BY_DEADLINE, name="tickets_ticket_deadline"),
            # The list of an admin, newest change first.
            models.Index(fields=["-updated_at", "-id"], name="tickets_ticket_recent"),
            # The list of a customer.
            models.Index(fields=["author", "-updated_at", "-id"], name="tickets_ticket_author"),
            # The list of an agent and the filter "assigned to me".
            models.Index(fields=["assignee", "-updated_at", "-id"], name="tickets_ticket_assignee"),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.title}"

    def get_absolute_url(self) -> str:
        return reverse("tickets:detail", args=[self.pk])

    def breach_recorded_at(self, due_at: datetime) -> datetime | None:
        """When the breach of exactly this deadline was recorded: a deadline that comes back is not recorded again."""
        instant = due_at.astimezone(UTC).isoformat()
        breaches = self.events.filter(type=TicketEvent.Type.SLA_BREACHED, payload__sla_due_at=instant)
        return breaches.values_list("created_at", flat=True).first()


class Comment(models.Model):
    ticket = models.ForeignKey(
        Ticket, models.CASCADE, verbose_name=_("ticket"), related_name="comments", db_index=False
    )
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, verbose_name=_("author"), related_name="+")
    body = Text(_("comment"), max_length=BODY_LENGTH)
    is_internal = models.BooleanField(
        _("internal"), default=False, help_text=_("Only agents and admins see internal comments.")
    )
    created_at = models.DateTimeField(_("created at"))
    form_key = models.UUIDField(null=True, editable=False)

    class Meta:
        verbose_name = _("comment")
        verbose_name_plural = _("comments")
        ordering = ["pk"]
        constraints = [once_per_form("tickets_comment_once")]
        indexes = [
            # The comments of a ticket in their order.
            models.Index(fields=["ticket", "id"], name="tickets_comment_ticket"),
        ]

    def __str__(self) -> str:
        return f"#{self.ticket_id}: {self.body[:50]}"


class TicketEventQuerySet(models.QuerySet["TicketEvent"]):
    def add_breaches(self, payloads: Mapping[int, dict[str, Any]]) -> list[tuple[int, int]]:
        """Write a line of the moment of this transaction for each ticket; returns the tickets with their lines.

        Raw SQL: bulk_create() takes five times as long, and the scan for breaches most of its time for it.
        """
        rows = [{"ticket_id": ticket, "payload": payload} for ticket, payload in payloads.items()]
        with connections[self.db].cursor() as cursor:
            cursor.execute(ADD_BREACHES, [json.dumps(rows)])
            return list(cursor.fetchall())


ADD_BREACHES = """
insert into tickets_ticketevent (ticket_id, type, payload, created_at)
select ticket_id, 'sla_breached', payload, now()
from jsonb_to_recordset(%s) as given (ticket_id bigint, payload jsonb)
returning ticket_id, id
"""


class TicketEvent(models.Model):
    """One line of a ticket's history. Written by the actions and the SLA scan only, never changed."""

    class Type(models.TextChoices):
        CREATED = "created", _("opened")
        ASSIGNED = "assigned", _("assignment changed")
        STATUS_CHANGED = "status_changed", _("status changed")
        PRIORITY_CHANGED = "priority_changed", _("priority changed")
        COMMENT_ADDED = "comment_added", _("comment added")
        SLA_BREACHED = "sla_breached", _("SLA breached")

    ticket = models.ForeignKey(Ticket, models.CASCADE, verbose_name=_("ticket"), related_name="events", db_index=False)
    type = models.CharField(_("type"), max_length=20, choices=Type.choices)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        verbose_name=_("actor"),
        related_name="+",
        null=True,
        blank=True,
        help_text=_("Empty when Stega did it by itself."),
    )
    payload = models.JSONField(_("details"), default=dict)
    created_at = models.DateTimeField(_("created at"))

    objects = TicketEventQuerySet.as_manager()

    class Meta:
        verbose_name = _("history entry")
        verbose_name_plural = _("history")
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                name="tickets_event_type",
                condition=models.Q(
                    type__in=[
                        "created",
                        "assigned",
                        "status_changed",
                        "priority_changed",
                        "comment_added",
                        "sla_breached",
                    ]
                ),
            ),
        ]
        indexes = [
            # The history of a ticket in its order.
            models.Index(fields=["ticket", "id"], name="tickets_event_ticket"),
        ]

    def __str__(self) -> str:
        return f"#{self.ticket_id} {self.type}"

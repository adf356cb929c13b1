from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from notifications.messages import event_name
from notifications.models import Circuit, Delivery


class RecordAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """A record of what happened: it is read, never written by hand."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


@admin.register(Delivery)
class DeliveryAdmin(RecordAdmin):
    list_display = ("created_at", "event", "ticket_id", "channel", "address", "state", "attempts", "sent_at")
    list_filter = ("state", "channel", "event_type", "created_at")
    search_fields = ("address", "recipient", "=ticket_id", "=event_key", "message_id", "detail")
    ordering = ("-created_at",)

    @admin.display(description=_("event"), ordering="event_type")
    def event(self, delivery: Delivery) -> str:
        return event_name(delivery.event_type)


@admin.register(Circuit)
class CircuitAdmin(RecordAdmin):
    list_display = ("line", "failures", "retry_at", "reason", "detail")
    ordering = ("-failures", "line")

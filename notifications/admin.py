from django.contrib import admin
from django.http import HttpRequest

from notifications.models import Delivery


@admin.register(Delivery)
class DeliveryAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """The ledger is a record: it is read, never written by hand."""

    list_display = ("created_at", "event_type", "ticket_id", "channel", "address", "state", "attempts", "sent_at")
    list_filter = ("state", "channel", "event_type", "created_at")
    search_fields = ("address", "recipient", "=ticket_id", "=event_key", "message_id", "detail")
    ordering = ("-created_at",)
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Delivery | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Delivery | None = None) -> bool:
        return False

from django.contrib import admin
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from notifications.messages import event_name
from notifications.models import Delivery
from stega.web.read_only import RecordAdmin


@admin.register(Delivery)
class DeliveryAdmin(RecordAdmin):
    list_display = ("created_at", "event", "ticket_id", "channel", "address", "state", "attempts", "sent_at")
    list_filter = ("state", "channel", "event_type", "created_at")
    search_fields = ("address", "recipient", "=ticket_id", "=event_key", "message_id", "detail")
    ordering = ("-created_at",)
    exclude = ("reason",)
    readonly_fields = ("reason_text",)

    @admin.display(description=_("event"), ordering="event_type")
    def event(self, delivery: Delivery) -> str:
        return event_name(delivery.event_type)

    @admin.display(description=_("reason"))
    def reason_text(self, delivery: Delivery) -> str:
        return gettext(delivery.reason) if delivery.reason else ""

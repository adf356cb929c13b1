from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from stega.models import OutboxEntry
from stega.web.read_only import RecordAdmin


class State(admin.SimpleListFilter):
    """What has become of the promise."""

    title = _("state")
    parameter_name = "state"
    states: ClassVar[dict[str, tuple[Any, dict[str, Any]]]] = {
        "open": (_("open"), {"done_at": None, "failed_at": None}),
        "done": (_("done"), {"done_at__isnull": False, "failed_at": None}),
        "let_be": (pgettext_lazy("outbox entry", "let be"), {"done_at__isnull": False, "failed_at__isnull": False}),
        "failed": (_("given up"), {"failed_at__isnull": False, "done_at": None}),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, label) for name, (label, _filter) in self.states.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        _label, wanted = self.states.get(self.value() or "", (None, {}))
        return queryset.filter(**wanted)


@admin.register(OutboxEntry)
class OutboxEntryAdmin(RecordAdmin):
    """The outbox is a record of promises: the console lets what was given up run again or be, and records it."""

    list_display = ("created_at", "task", "key", "relayed_at", "done_at", "failed_at", "attempts")
    list_filter = (State, "task")
    search_fields = ("=key",)
    ordering = ("-created_at",)

import django_q.admin  # noqa: F401 - registers what is taken out below
from django.contrib import admin
from django_q.models import Failure, OrmQ, Schedule, Success

from operations.models import OperatorAction
from stega.web.read_only import RecordAdmin

admin.site.unregister([Schedule, Success, Failure, OrmQ])  # the console's, which keeps a record of who runs what


@admin.register(OperatorAction)
class OperatorActionAdmin(RecordAdmin):
    """The record of what operators did: read here, written by the console alone."""

    list_display = ("requested_at", "actor", "kind", "target_text", "count", "rows_text", "state_text", "reason")
    list_filter = ("kind", "state", "requested_at")
    list_select_related = ("actor",)
    search_fields = ("reason", "actor__username")
    ordering = ("-pk",)
    exclude = ("state", "outcome", "touched")
    readonly_fields = ("state_text", "outcome_text", "rows_text")

import django_q.admin  # noqa: F401 - registers what is taken out below
from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django_q.models import Failure, OrmQ, Schedule, Success

from operations.models import OperatorAction

admin.site.unregister([Schedule, Success, Failure, OrmQ])  # the console's, which keeps a record of who runs what


@admin.register(OperatorAction)
class OperatorActionAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """The record of what operators did: read here, written by the console alone."""

    list_display = ("requested_at", "actor", "kind", "target_text", "count", "touched", "state", "reason")
    list_filter = ("kind", "state", "requested_at")
    list_select_related = ("actor",)
    search_fields = ("reason", "actor__username")
    ordering = ("-pk",)
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

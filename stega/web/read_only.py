"""What is read in the admin, and never written by hand."""

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest


class ReadOnly:
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


class RecordAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """A record of what happened. Its list does not count all rows beside those that it shows."""

    show_full_result_count = False

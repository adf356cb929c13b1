"""The Django admin of Stega."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, cast

from django.contrib import admin
from django.contrib.admin import apps
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponseBase

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class AdminConfig(apps.AdminConfig):
    default_site = "stega.web.admin_site.AdminSite"


class AdminSite(admin.AdminSite):
    site_header = site_title = "Stega"

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Show the form again to whoever loses a race for a name: the second look finds it taken, and says so.

        Between a form's look and its write another person may have taken a unique name. Every view of the admin writes
        in a transaction of its own, so nothing of the first try is left.
        """

        def looking_twice(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                return view(request, *args, **kwargs)
            except IntegrityError:
                return view(request, *args, **kwargs)

        return super().admin_view(cast(View, update_wrapper(looking_twice, view)), cacheable)

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("accounts/", include("accounts.urls")),
    path("", include("accounts.admin_urls")),
    path("admin/operations/", include("operations.urls")),
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    path("notifications/", include("notifications.urls")),
    path("", include("tickets.urls")),
]
if settings.STEGA_DEV_INBOX:
    urlpatterns.insert(0, path("dev/inbox/", include("notifications.inbox_urls")))

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.utils.translation import gettext_lazy as _

from accounts.models import User


@admin.register(User)
class UserAdmin(DjangoUserAdmin):  # type: ignore[type-arg]  # not generic at run time
    list_display = ["username", "display_name", "email", "role", "is_active", "is_staff", "last_login"]
    list_filter = ["role", "is_active", "is_staff", "is_superuser"]
    search_fields = ["username", "display_name", "email"]
    readonly_fields = ["first_signed_in_at", "last_login", "date_joined"]
    fieldsets = [
        (None, {"fields": ["username", "password"]}),
        (_("Person"), {"fields": ["display_name", "email", "role", "language", "time_zone"]}),
        (_("Permissions"), {"fields": ["is_active", "is_staff", "is_superuser", "groups", "user_permissions"]}),
        (_("Dates"), {"fields": ["first_signed_in_at", "last_login", "date_joined"]}),
    ]
    add_fieldsets = [
        (
            None,
            {
                "classes": ["wide"],
                "fields": ["username", "display_name", "email", "role", "usable_password", "password1", "password2"],
            },
        ),
    ]

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TicketsConfig(AppConfig):
    name = "tickets"
    verbose_name = _("help desk")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from tickets import checks  # noqa: F401 - registers the system checks

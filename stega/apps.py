import logging

from django.apps import AppConfig
from django.conf import settings


class StegaConfig(AppConfig):
    name = "stega"
    verbose_name = "Stega"

    def ready(self) -> None:
        from stega import checks, logs  # noqa: F401 - registers the system checks
        from stega.installation import agreement

        if settings.STEGA_LOG_FORMAT == "json":
            logging.captureWarnings(True)
        logs.tell_crashes(settings.STEGA_LOG_FORMAT)
        agreement.watch()

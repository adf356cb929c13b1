from django.apps import AppConfig


class StegaConfig(AppConfig):
    name = "stega"
    verbose_name = "Stega"

    def ready(self) -> None:
        from stega import checks  # noqa: F401 - registers the system checks

from typing import Any

from django.core.management.base import BaseCommand

from stega.tasks.schedules import install


class Command(BaseCommand):
    help = "Create or correct the periodic tasks on the jobs database. Idempotent; may run in several places at once."

    def handle(self, **options: Any) -> None:
        self.stdout.write(f"schedules: {', '.join(install())}")

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from stega.models import SharedSetting


class Command(BaseCommand):
    help = (
        "Show the settings that every process must share, each with the process that brought this value; of the secret "
        "key a digest, from which nobody learns it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--forget",
            action="store_true",
            help="let the next process tell its own: for a secret key that was lost, with every process stopped",
        )

    def handle(self, *, forget: bool, **options: Any) -> None:
        for row in SharedSetting.objects.all():
            self.stdout.write(f"{row.name}: {row.value} ({row.told_by}, {row.told_at:%Y-%m-%d %H:%M:%S})")
        if forget:
            SharedSetting.objects.all().delete()
            self.stdout.write("forgotten: the next process that starts tells its own")

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tickets import demo


class Command(BaseCommand):
    help = (
        "Make the demo: people, products and tickets to try Stega with. Only with STEGA_DEBUG=1, since the demo's "
        "passwords are public. Makes what is missing, so running it again changes nothing. Says what it made; returns "
        "nothing when there was nothing to make."
    )

    def handle(self, **options: Any) -> str | None:
        if not settings.DEBUG:
            raise CommandError(
                "The demo has public passwords and is only for development: set STEGA_DEBUG=1 to seed it."
            )
        return f"demo: {len(demo.STORIES)} tickets" if demo.seed() else None

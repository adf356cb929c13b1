from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from stega.pgque.event_document import path_of, text_in


class Command(BaseCommand):
    help = "Write docs/events.md, in every language, from the catalogue of events."

    def handle(self, **options: Any) -> None:
        for language, _name in settings.LANGUAGES:
            path_of(language).parent.mkdir(parents=True, exist_ok=True)
            path_of(language).write_text(text_in(language))
            self.stdout.write(f"events_document: {path_of(language).relative_to(settings.BASE_DIR)}")

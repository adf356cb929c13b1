from typing import Any

from django.core.management.base import BaseCommand, CommandError

from stega.wording import catalogues


class Command(BaseCommand):
    help = (
        "Bring the translations in locale/ up to date with the code of all apps and compile them. Fails while a "
        "message is not translated: write its translation into the .po file and run this again. Needs the "
        "development requirements."
    )

    def handle(self, **options: Any) -> None:
        for locale in catalogues.locales():
            self.stdout.write(f"{locale}: {len(catalogues.update(locale))} messages")
        if problems := catalogues.problems():
            raise CommandError("\n".join(problems))

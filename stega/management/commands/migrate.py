from typing import Any

from django.core.management.commands.migrate import Command as Migrate

from stega.database.mismatch import undoubted
from stega.database.routers import HOME


class Command(Migrate):
    """Django's own command, which would leave a table of migrations in a database that is home to no app."""

    def handle(self, *args: Any, **options: Any) -> None:
        if options["database"] in {"default", *HOME.values()}:
            with undoubted():
                super().handle(*args, **options)
        elif options["verbosity"]:
            self.stdout.write(f"Nothing of Django lives in {options['database']}.")

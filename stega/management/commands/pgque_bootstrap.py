from typing import Any

from django.core.management.base import BaseCommand

from stega.database.mismatch import undoubted
from stega.pgque.bootstrap import bootstrap


class Command(BaseCommand):
    help = (
        "Install the event log on the events database, create and configure its queue, subscribe the consumers. "
        "Idempotent; may run in several places at once; keeps data and open batches."
    )

    def handle(self, **options: Any) -> None:
        with undoubted():
            bootstrap(lambda line: self.stdout.write(f"pgque_bootstrap: {line}"))

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from notifications.handlers import handlers_of
from stega.command import ProcessCommand, positive_seconds
from stega.pgque.catalogue import NOTIFICATION_WORKER
from stega.pgque.consumer import Consumer


class Command(ProcessCommand):
    help = (
        "Tell people about tickets, accounts and reports by e-mail and Slack. Run one or more: one works, the others "
        "stand by. Stop it with SIGTERM or Ctrl+C: it finishes the current message."
    )
    process_name = "notification_worker"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--interval",
            type=positive_seconds,
            default=settings.CONSUMER_POLL_SECONDS,
            help="seconds between looks at an idle queue; a wake-up comes first (default: %(default)s)",
        )

    def handle(self, *, interval: float, once: bool, **options: Any) -> None:
        handlers = handlers_of(NOTIFICATION_WORKER, stopping=lambda: consumer.stopping)
        consumer = Consumer(NOTIFICATION_WORKER, handlers, interval=interval)
        self.run_process(consumer, once=once)

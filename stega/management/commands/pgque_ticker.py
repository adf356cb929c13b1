from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from stega.pgque.ticker import Ticker
from stega.processes.command import ProcessCommand, add_seconds


class Command(ProcessCommand):
    help = (
        "Tick the queues, bring due retries back, rotate tables. Run one or more: one leads, the others stand by. "
        "Stop it with SIGTERM or Ctrl+C."
    )
    process_name = "pgque_ticker"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_seconds(parser, "--interval", settings.PGQUE_TICK_SECONDS, "seconds between ticks while events flow")
        add_seconds(parser, "--idle-interval", settings.PGQUE_IDLE_TICK_SECONDS, "seconds between looks at idle queues")

    def handle(self, *, interval: float, idle_interval: float, once: bool, **options: Any) -> None:
        self.run_process(Ticker(interval=interval, idle_interval=idle_interval), once=once)

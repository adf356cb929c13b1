from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from notifications.delivery import write_down_sent
from notifications.handlers import handlers_of
from stega.pgque.catalogue import SLA_BREACH_DISPATCHER
from stega.pgque.consumer import Consumer
from stega.processes.command import ConsumerCommand, add_seconds


class Command(ConsumerCommand):
    help = (
        "Tell people about breached SLAs by e-mail and Slack. Run as many as needed: they share the work as members of "
        "one group. Stop it with SIGTERM or Ctrl+C: it finishes the current message."
    )
    process_name = "sla_breach_worker"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        about = "seconds of silence after which a member loses its batch to another"
        add_seconds(parser, "--dead-interval", settings.SLA_DEAD_INTERVAL_SECONDS, about)

    def handle(self, *, interval: float, dead_interval: float, once: bool, **options: Any) -> None:
        handlers = handlers_of(SLA_BREACH_DISPATCHER, stopping=lambda: consumer.stopping)
        consumer = Consumer(
            SLA_BREACH_DISPATCHER,
            handlers,
            group=True,
            dead_interval=dead_interval,
            interval=interval,
            catch_up=write_down_sent,
        )
        self.run_process(consumer, once=once)

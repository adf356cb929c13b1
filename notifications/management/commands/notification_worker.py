from typing import Any

from notifications.delivery import write_down_sent
from notifications.handlers import handlers_of
from stega.pgque.catalogue import NOTIFICATION_WORKER
from stega.pgque.consumer import Consumer
from stega.processes.command import ConsumerCommand


class Command(ConsumerCommand):
    help = (
        "Tell people about tickets, accounts and reports by e-mail and Slack. Run one or more: one works, the others "
        "stand by. Stop it with SIGTERM or Ctrl+C: it finishes the current message."
    )
    process_name = "notification_worker"

    def handle(self, *, interval: float, once: bool, **options: Any) -> None:
        handlers = handlers_of(NOTIFICATION_WORKER, stopping=lambda: consumer.stopping)
        consumer = Consumer(NOTIFICATION_WORKER, handlers, interval=interval, catch_up=write_down_sent)
        self.run_process(consumer, once=once)

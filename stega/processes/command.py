"""What the commands of long-running processes share."""

from argparse import ArgumentTypeError
from math import isfinite
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from stega.installation.preparation import require_prepared
from stega.processes import fingerprint, heartbeat
from stega.processes.health import tell_health
from stega.processes.process import Process
from stega.processes.stopping import stop_on_signals


class HealthChecked(BaseCommand):
    """A command whose processes have a heartbeat; with `--check` it looks at theirs instead of starting another."""

    process_name = ""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--check",
            action="store_true",
            help="tell whether those that run on this machine are well: exit code 0 or 1",
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        if not options.get("check"):
            return super().execute(*args, **options)
        tell_health(self.process_name)
        return None


class ProcessCommand(HealthChecked):
    """A command that runs a Process until SIGTERM or Ctrl+C (exit code 0; a second signal kills)."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--once", action="store_true", help="work until nothing is left to do, then end")

    def run_process(self, process: Process, *, once: bool) -> None:
        """Run it. What it needs and does not find at the start ends it with one clear line and exit code 1."""
        for alias in process.aliases:
            require_prepared(alias)
        if "default" in process.aliases:
            fingerprint.compare(self.process_name)
        process.heartbeat = heartbeat.Heartbeat(self.process_name)
        with stop_on_signals(process):
            process.run(until_idle=once)


class ConsumerCommand(ProcessCommand):
    """A command that runs a Consumer."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        about = "seconds between looks at an idle queue; a wake-up comes first"
        add_seconds(parser, "--interval", settings.CONSUMER_POLL_SECONDS, about)


def add_seconds(parser: CommandParser, option: str, default: float, about: str) -> None:
    """An option of a command: seconds above 0, the setting of that name by default."""
    parser.add_argument(option, type=positive_seconds, default=default, help=f"{about} (default: %(default)s)")


def positive_seconds(text: str) -> float:
    """An argument type: a finite number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not isfinite(value) or value <= 0:
        raise ArgumentTypeError("must be more than 0 seconds")
    return value

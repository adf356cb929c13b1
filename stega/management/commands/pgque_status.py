import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from stega.pgque import client
from stega.preparation import require_prepared

COLUMNS = {
    "queues": ("queue_name", "ticker_lag", "ev_new", "ev_per_sec", "last_tick_id", "queue_cur_table"),
    "consumers": ("queue_name", "consumer_name", "lag", "last_seen", "pending_events", "current_batch"),
}


class Command(BaseCommand):
    help = "Show the event log: engine, queues with the ticker's lag, consumers with what is pending."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def handle(self, **options: Any) -> None:
        require_prepared("events")
        status = {
            "version": client.version(),
            "engine_version": client.engine_version(),
            "queues": client.queue_info(),
            "consumers": client.consumer_info(),
        }
        self.stdout.write(_document(status) if options["json"] else _tables(status))


def _document(status: dict[str, Any]) -> str:
    return json.dumps(status, default=str, indent=2)


def _tables(status: dict[str, Any]) -> str:
    lines = [f"PgQue API {status['version']}, engine {status['engine_version'] or 'upstream'}"]
    for title, columns in COLUMNS.items():
        rows = [columns, *(tuple(_cell(row[column]) for column in columns) for row in status[title])]
        widths = [max(len(row[index]) for row in rows) for index in range(len(columns))]
        lines += ["", title, *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if isinstance(value, float) else str(value)

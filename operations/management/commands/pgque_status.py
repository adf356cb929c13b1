import json
import threading
from argparse import ArgumentParser
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand

from operations.facts import databases, ledger, queues, tickers
from operations.facts.reading import read_all
from stega.installation.preparation import require_prepared
from stega.processes.command import positive_seconds
from stega.processes.stopping import leave_on_signals

COLUMNS = {
    "queues": (
        ("queue", "name"),
        ("ticker lag", "ticker_lag"),
        ("idle", "is_idle"),
        ("per second", "events_per_second"),
        ("unticked", "events_after_tick"),
        ("last tick", "last_tick"),
        ("MiB", "mebibytes"),
        ("retries", "retries"),
        ("dead letters", "dead_letters"),
        ("rotated ago", "rotated_ago"),
        ("rotation waits for", "waits_for"),
    ),
    "consumers": (
        ("queue", "queue"),
        ("consumer", "name"),
        ("member", "member"),
        ("lag", "lag"),
        ("pending", "pending"),
        ("finished tick", "tick_age"),
        ("last seen", "last_seen"),
        ("idle", "is_idle"),
        ("gone", "is_gone"),
        ("open batch", "open_batch"),
        ("processes", "processes"),
    ),
    "lines": (
        ("line", "name"),
        ("failures in a row", "failures"),
        ("not before", "retry_at"),
        ("reason", "reason"),
    ),
}
PATIENCE_SECONDS = 5.0


class Command(BaseCommand):
    help = (
        "Show the event log: engine, the ticker that leads, queues with their size and dead letters, consumers with "
        "what is pending, and the mail server or products' Slack webhooks that fail. Ctrl+C ends --watch."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document, durations in seconds")
        parser.add_argument(
            "--watch",
            nargs="?",
            type=positive_seconds,
            const=2.0,
            metavar="SECONDS",
            help="show it again every so many seconds (default: %(const)s), also through an outage",
        )

    def handle(self, *, watch: float | None, **options: Any) -> None:
        show = self._show_document if options["json"] else self._show_tables
        if watch is None:
            require_prepared("events")
            show(_status())
            return
        leave_on_signals()
        while True:
            show(_status(), is_watched=True)
            threading.Event().wait(watch)

    def _show_document(self, status: dict[str, Any], *, is_watched: bool = False) -> None:
        self.stdout.write(json.dumps(status, default=_plain, indent=None if is_watched else 2))
        self.stdout.flush()

    def _show_tables(self, status: dict[str, Any], *, is_watched: bool = False) -> None:
        if is_watched and self.stdout.isatty():
            self.stdout.write("\x1b[2J\x1b[H", ending="")
        self.stdout.write(_tables(status))
        self.stdout.flush()


def _status() -> dict[str, Any]:
    told = read_all(
        {
            "engine": databases.engine_question(),
            "tickers": tickers.question(),
            "queues": queues.question(),
            "lines": ledger.lines_question(),
        },
        PATIENCE_SECONDS,
    )
    lines = told.pop("lines")
    trouble = next((reading.trouble for reading in told.values() if reading.trouble), None)
    if trouble:
        return {"trouble": f"the events database: {trouble}"}
    return {
        "trouble": None,
        **_told(**{name: reading.value for name, reading in told.items()}),
        "lines": None if lines.value is None else [asdict(each) for each in lines.value],
    }


def _told(engine: Any, tickers: Any, queues: Any) -> dict[str, Any]:
    return {
        "version": engine.version,
        "engine_version": engine.engine_version,
        "is_current": engine.is_current,
        "tickers": asdict(tickers),
        "queues": [
            {**asdict(each), "mebibytes": each.bytes / 2**20, "is_idle": each.is_idle} for each in queues.queues
        ],
        "consumers": [
            {
                **asdict(each),
                "is_idle": each.is_idle,
                "lag": None if each.member else each.lag or timedelta(),
                "processes": None if each.sessions is None else len(each.sessions),
            }
            for each in queues.consumers
        ],
    }


def _tables(status: dict[str, Any]) -> str:
    if status["trouble"]:
        return str(status["trouble"])
    lines = [
        f"PgQue API {status['version']}, engine {status['engine_version'] or 'upstream'}",
        _ticker(status["tickers"]),
    ]
    for title, columns in COLUMNS.items():
        if title == "lines" and not status[title]:
            lines += ["", "lines: the default database does not tell"] if status[title] is None else []
            continue
        heads = tuple(head for head, _ in columns)
        rows = [heads, *(tuple(_cell(row[field]) for _, field in columns) for row in status[title])]
        widths = [max(len(row[index]) for row in rows) for index in range(len(columns))]
        lines += ["", title, *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def _ticker(tickers: dict[str, Any]) -> str:
    leader = tickers["leader"]
    if leader is None:
        return "no ticker leads" if tickers["is_visible"] else "a pooler hides the tickers"
    where = f"session {leader['pid']} from {leader['address'] or 'a local socket'}"
    return f"ticker: {where} leads since {leader['since']:%Y-%m-%d %H:%M:%S %Z}, {tickers['standbys']} stand by"


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.1f} s"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S %Z}"
    if isinstance(value, tuple):
        return ", ".join(value) or "an old transaction"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.isoformat() if isinstance(value, datetime) else str(value)

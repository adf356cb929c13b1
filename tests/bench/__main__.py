"""`make bench`: the figures of the event line, from real processes on an embedded server of their own.

Each figure stands beside what the same machine does in the same run at best (a limit), since machines are noisy.
"""

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stega.embedded import DATABASES, Server


@dataclass(frozen=True)
class Figure:
    name: str
    value: str
    goal: str
    reached: bool
    limit: str


@contextmanager
def databases() -> Iterator[None]:
    """Three empty databases on a durable server, prepared as the bootstrap prepares them."""
    home = Path(tempfile.mkdtemp(prefix="stega-bench-"))
    server = Server(home)
    server.start()
    try:
        for alias, variable in {
            "default": "DATABASE_URL",
            "jobs": "JOBS_DATABASE_URL",
            "events": "EVENTS_DATABASE_URL",
        }.items():
            server.create_database(DATABASES[alias])
            os.environ[variable] = server.url(DATABASES[alias])
        os.environ |= {"STEGA_DEBUG": "1", "STEGA_LOG_LEVEL": "WARNING", "DJANGO_SETTINGS_MODULE": "stega.settings"}
        _prepare()
        yield
    finally:
        from django.db import connections

        connections.close_all()
        server.delete()
        shutil.rmtree(home, ignore_errors=True)


def _prepare() -> None:
    import django
    from django.core.management import call_command

    django.setup()
    for alias in ("default", "jobs"):
        call_command("migrate", database=alias, verbosity=0)
    call_command("pgque_bootstrap", stdout=open(os.devnull, "w"))  # noqa: SIM115


def main() -> int:
    with databases():
        from tests.bench import breaches, delivery, figures

        measured: list[Figure] = []
        measures: list[Callable[[], list[Figure]]] = [
            figures.latency,
            figures.throughput,
            figures.enqueue_cost,
            figures.memory,
            delivery.mails,
            delivery.members,
            breaches.scan,
        ]
        for measure in measures:
            print(f"measuring {measure.__name__.replace('_', ' ')} ...", file=sys.stderr, flush=True)  # noqa: T201
            measured += measure()
    report(measured)
    return 0 if all(figure.reached for figure in measured) else 1


def report(measured: list[Figure], beside: str = "limit in the same run") -> None:
    rows = [("figure", "measured", "goal", "", beside)]
    rows += [(f.name, f.value, f.goal, "ok" if f.reached else "MISSED", f.limit) for f in measured]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())  # noqa: T201


def milliseconds(values: list[float], quantile: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * quantile))] * 1000


def median_milliseconds(values: list[float]) -> float:
    return statistics.median(values) * 1000


if __name__ == "__main__":
    sys.exit(main())

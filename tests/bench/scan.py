"""The scan for breached SLAs among a million open tickets, in a process of its own whose memory is told.

Prints one JSON line: breaches found and seconds of two scans in a row, and the peak memory of the process in MiB before
and after.
"""

import json
import resource
import time
from typing import Any

import django


def main() -> None:
    django.setup()
    from tickets.tasks import check_sla_breaches

    before = _peak_mib()
    scans: list[dict[str, Any]] = []
    for _ in range(2):
        begin = time.perf_counter()
        scans.append({**check_sla_breaches(), "seconds": time.perf_counter() - begin})
    print(json.dumps({"scans": scans, "before_mib": before, "peak_mib": _peak_mib()}), flush=True)  # noqa: T201


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()

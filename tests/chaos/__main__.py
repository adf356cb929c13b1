"""`make chaos`: the whole line under fire, on three embedded servers of its own.

SECONDS_OF_CHAOS (180), CHAOS_SEED (random; it makes the plan of faults), CHAOS_RATE (200 facts a second) and
CHAOS_OUTBOX_RATE (50: as many of them go through the outbox) come from the environment. Exit code 1 when something was
lost, told twice too often, or a dead letter without being poison.

Two cores that also run the servers, the receivers and two of every process carry about 50 facts a second through the
outbox, and not the mails of 200: so the rest is published straight, mostly for nobody to be told, and what is still to
be told when the facts end is waited for. The table says how much that was.
"""

import os
import random
import sys
import tempfile
from pathlib import Path

from tests.support import servers

KILL_EACH_SECONDS = 4.0


def main() -> int:
    seconds = float(os.environ.get("SECONDS_OF_CHAOS", 180))
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
    rate = float(os.environ.get("CHAOS_RATE", 200))
    through_outbox = min(rate, float(os.environ.get("CHAOS_OUTBOX_RATE", 50)))
    print(f"CHAOS_SEED={seed}: {seconds:g} s at {rate:g} facts/s", file=sys.stderr, flush=True)  # noqa: T201
    with tempfile.TemporaryDirectory(prefix="stega-chaos-") as folder, servers.running():
        _prepare()
        from tests.bench.__main__ import report
        from tests.chaos.report import figures, missed_goals
        from tests.chaos.run import Fire, Run
        from tests.support.processes import environment

        fire = Fire(seed, seconds, through_outbox, rate - through_outbox, KILL_EACH_SECONDS)
        seen = Run(fire, environment(), Path(folder)).play()
        measured = figures(seen)
    report(measured, beside="to know")
    if not missed_goals(measured):
        return 0
    print(f"What the processes said: {seen.supervisor.write_logs()}", file=sys.stderr)  # noqa: T201
    return 1


def _prepare() -> None:
    import django
    from django.core.management import call_command

    os.environ |= {"DJANGO_SETTINGS_MODULE": "stega.settings", "STEGA_LOG_LEVEL": "WARNING"}
    django.setup()
    for alias in ("default", "jobs"):
        call_command("migrate", database=alias, verbosity=0)
    with open(os.devnull, "w") as nowhere:
        call_command("pgque_bootstrap", stdout=nowhere)


if __name__ == "__main__":
    sys.exit(main())

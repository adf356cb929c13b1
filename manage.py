#!/usr/bin/env python
"""Run a management command of Stega."""

import os
import sys

from stega.processes.stopping import leave_on_signals

PROCESSES = {"notification_worker", "pgque_ticker", "qcluster", "sla_breach_worker"}


def main() -> None:
    command, *options = sys.argv[1:] or [""]
    if command in PROCESSES:
        leave_on_signals()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "stega.settings")
    from django.core.management import execute_from_command_line

    from stega.processes.health import tell_health
    from stega.processes.startup import refusing_clearly

    with refusing_clearly():
        if command in PROCESSES and options == ["--check"]:
            tell_health(command)  # asked every few seconds: without setting up Django, in a quarter of the time
        else:
            execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

#!/usr/bin/env python
"""Run a management command of Stega."""

import os
import sys

from stega.processes.stopping import leave_on_signals

PROCESSES = {"notification_worker", "pgque_ticker", "qcluster", "sla_breach_worker"}


def main() -> None:
    if PROCESSES & set(sys.argv[1:2]):
        leave_on_signals()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "stega.settings")
    from django.core.management import execute_from_command_line

    from stega.processes.startup import refusing_clearly

    with refusing_clearly():
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

#!/usr/bin/env python
"""Run a management command of Stega."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "stega.settings")
    from django.core.management import execute_from_command_line

    from stega.startup import refusing_clearly

    with refusing_clearly():
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

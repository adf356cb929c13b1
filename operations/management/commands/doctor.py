import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.checks import run_checks
from django.core.management.base import BaseCommand

from operations import facts
from operations.facts import configuration
from operations.problems import problems
from operations.problems.words import Name, Problem, Severity

PATIENCE_SECONDS = 5.0


class Command(BaseCommand):
    help = (
        "Examine this installation: the three databases, migrations, the event log, its processes, the outbox, tasks, "
        "mail and Slack, and the settings of this process. Each problem comes with its remedy; exit code 1 when there "
        "is one. Changes nothing."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def handle(self, **options: Any) -> None:
        found = _examine()
        self.stdout.write(_document(found) if options["json"] else _report(found))
        if found:
            sys.exit(1)


def _examine() -> list[Problem]:
    found = problems(facts.gather(PATIENCE_SECONDS))
    return [*found, *_of_engine_file(), *_of_django({problem.subject for problem in found})]


def _of_engine_file() -> list[Problem]:
    """The file that the bootstrap installs, beside what it should be."""
    trouble = configuration.engine_file_trouble()
    if not trouble:
        return []
    return [
        Problem(
            Name.VERSION_MISMATCH,
            "vendor/pgque",
            f"The event log's script is not what it should be: {trouble}.",
            "Bring back the released files of vendor/pgque, or run: python manage.py pgque_vendor update TAG",
            Severity.WARNING,
        )
    ]


def _of_django(known: set[str]) -> list[Problem]:
    """What Django's own system checks say beyond the findings above."""
    return [
        Problem(Name.SETTINGS_UNSAFE, str(each.id), str(each.msg), str(each.hint or ""), Severity.WARNING)
        for each in run_checks()
        if each.id not in known and not each.is_silenced()
    ]


def _document(found: list[Problem]) -> str:
    by_name = {name: [asdict(each) for each in found if each.name == name] for name in Name}
    checks = [{"name": name, "ok": not those, "problems": those} for name, those in by_name.items()]
    return json.dumps({"ok": not found, "checks": checks}, indent=2)


def _report(found: list[Problem]) -> str:
    lines: list[str] = []
    for name in Name:
        those = [each for each in found if each.name == name]
        if not those:
            lines.append(f"ok        {name}")
        for each in those:
            lines += [f"{each.severity:<8}  {name} ({each.subject}): {each.text}", f"          {each.remedy}"]
    lines.append(f"{len(found)} problems" if len(found) != 1 else "1 problem")
    return "\n".join(lines)

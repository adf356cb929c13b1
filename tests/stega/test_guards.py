"""Rules of the architecture that no import contract can say."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for app in ("stega", "accounts", "tickets", "notifications", "operations")
    for path in (ROOT / app).rglob("*.py")
]


@pytest.mark.parametrize(
    ("pattern", "allowed", "instead"),
    [
        (r"\basync_task\b", {"stega/outbox.py"}, "enqueue through stega.outbox"),
        (
            r"\bpgque\.\w+\(|\b(?:from|join|update|into|table) pgque\.",
            {"stega/pgque/client.py", "stega/pgque/oversight.py"},
            "call what processes ask in stega.pgque.client, and operators in stega.pgque.oversight",
        ),
        (
            r"\bos\.environ\b|\bgetenv\b",
            {"stega/env.py", "stega/wsgi.py", "stega/embedded/programs.py", "stega/management/commands/up.py"},
            "read it in stega/settings.py through env.py",
        ),
        (
            r"^(from|import) (stega|accounts|tickets|notifications|operations)\.management",
            set(),
            "share it in a module",
        ),
        (
            r"\btime\.time\(\)",
            {"stega/processes/procfile.py", "stega/logs.py"},
            "time.monotonic() for spans; for moments the database's clock",
        ),
        (
            r"\btimezone\.now\(\)",
            {
                "stega/templatetags/moments.py",
                "tickets/templatetags/desk.py",
                "stega/management/commands/pgque_vendor.py",
                "accounts/actions.py",
                "notifications/channels/slack.py",
                "operations/facts/databases.py",
                "operations/ways.py",
                "operations/console/pages.py",
                "operations/templatetags/console.py",
            },
            "a host's clock may jump: ask the database",
        ),
        (r"on_commit\((?![^\n]*using=)", set(), "name the alias: on_commit(..., using=...)"),
    ],
)
def test_one_module_alone_may_do_this(pattern, allowed, instead):
    offenders = {str(path.relative_to(ROOT)) for path in SOURCES if re.search(pattern, path.read_text(), re.MULTILINE)}

    assert offenders <= allowed, f"{offenders - allowed}: {instead}"


@pytest.mark.parametrize(
    "module",
    [
        "tickets/policy.py",
        "tickets/workflow.py",
        "tickets/sla.py",
        "notifications/messages.py",
        "stega/pgque/catalogue.py",
        *(str(path.relative_to(ROOT)) for path in ROOT.glob("operations/problems/*.py")),
    ],
)
def test_decisions_are_pure_and_know_no_database(module):
    assert "django.db" not in (ROOT / module).read_text()


def test_make_alone_lists_the_targets_in_two_columns():
    make = ["make", "--no-print-directory"]  # `make test` tells a make below it to name its folder
    listed = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()

    columns = {re.match(r"make \S+ +", line).end() for line in listed}
    assert len(columns) == 1
    assert len(listed) > 10

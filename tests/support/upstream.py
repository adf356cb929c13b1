"""A stand-in for upstream's PgQue: our own engine without what tells it apart, in a git repository."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

OUR_SCRIPT = Path(__file__).resolve().parents[2] / "vendor" / "pgque" / "pgque.sql"

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: only pgque_vendor needs it")


CHANGES = (
    # What ours adds: its own version, the repair after a restore, the indexes of the console.
    (r"create or replace function pgque\.engine_version\(\).*?\$\$.*?\$\$;\n", ""),
    (r"comment on function pgque\.engine_version\(\)[^\n]*\n", ""),
    (r"\n-- src/82_rebase\.sql\n.*?(?=\n-- src/)", ""),
    (r"(?<= )engine_version ", ""),  # among the names of 90_roles.sql
    (r"(?<= )rebase ", ""),
    (r"create index if not exists dl_cause_idx .*?;\n", ""),
    (r"create index if not exists dl_key_idx .*?;\n", ""),
    # What upstream does less of in one call: ten retries, one window, empty or not.
    (r"(?=for update skip locked\) l')", "order by d.ev_retry_after limit 10 "),
    (r" and t\.tick_event_seq <> f\.tick_event_seq", ""),
)
"""Pattern and replacement of each place where ours does more than PgQue 0.2 has to."""


def upstream_script() -> str:
    """An engine that gives the application no more than upstream's does."""
    script = OUR_SCRIPT.read_text()
    for pattern, replacement in CHANGES:
        script, count = re.subn(pattern, replacement, script, flags=re.DOTALL)
        assert count == 1, f"pgque.sql has {count} of {pattern}"
    return script


class Repository:
    """A git repository made by a test, laid out as upstream's is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"file://{folder}"
        folder.mkdir()
        self.git("init", "--quiet")
        self.files("select 'first'", LICENSE="licence", NOTICE="notice")

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=upstream", "-c", "user.email=upstream@localhost", *arguments]
        done = subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def files(self, script: str, **top: str) -> None:
        """Write files for the next tag."""
        (self.folder / "sql").mkdir(exist_ok=True)
        (self.folder / "sql" / "pgque.sql").write_text(script)
        for name, text in top.items():
            (self.folder / name).write_text(text)

    def tag(self, name: str, *options: str) -> str:
        """Commit what is there under a tag; the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", name)
        self.git("tag", *options, name)
        return self.git("rev-parse", "HEAD")

"""A stand-in for upstream's PgQue: our own engine without what tells it apart, in a git repository."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

OUR_SCRIPT = Path(__file__).resolve().parents[2] / "vendor" / "pgque" / "pgque.sql"

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: only pgque_vendor needs it")


def upstream_script() -> str:
    """An engine that does not know `engine_version()`, as upstream's does not."""
    script = OUR_SCRIPT.read_text()
    for statement in (
        r"create or replace function pgque\.engine_version\(\).*?\$\$.*?\$\$;\n",
        r"comment on function pgque\.engine_version\(\)[^\n]*\n",
        r"(?<= )engine_version ",  # among the names of 90_roles.sql
    ):
        script, count = re.subn(statement, "", script, flags=re.DOTALL)
        assert count == 1, f"pgque.sql has {count} of {statement}"
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

"""docs/guide.md is true: every command in it is run, in its order, in a copy of the project of its own.

A `sh` block is run to its end; one marked `background` runs on; one marked `until` is repeated until it says what the
guide says. A `text` block holds lines of what the block before it says, `…` standing for anything.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from stega import embedded
from tests.support.processes import ROOT, VARIABLES, RunningProcess, free_port
from tests.support.waiting import wait_until

GUIDE = ROOT / "docs" / "guide.md"
PORTUGUESE = ROOT / "docs" / "pt-br" / "guide.md"
BLOCK = re.compile(r"^```(sh|text)( background| until)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEPT = re.compile(r"(export |\. )")


@dataclass
class Block:
    commands: str
    how: str
    says: list[str]


def blocks(path):
    found = []
    for language, how, text in BLOCK.findall(path.read_text()):
        if language == "sh":
            found.append(Block(text, how.strip(), []))
        else:
            found[-1].says = text.splitlines()
    return found


def missing(block, output):
    """The lines that the guide promises and the output lacks."""
    lines = output.splitlines()
    patterns = {line: ".*".join(map(re.escape, line.split("…"))) for line in block.says}
    return [line for line, pattern in patterns.items() if not any(re.search(pattern, each) for each in lines)]


class Reader:
    """Somebody who follows the guide in a copy of the project, with one shell for each process that runs on."""

    def __init__(self, folder, port, shells):
        self.folder, self.port, self.shells = folder, port, shells
        self.kept = ""
        self.env = {
            name: value for name, value in os.environ.items() if name not in {*VARIABLES.values(), "STEGA_DEBUG"}
        }
        self.env |= {"PYTHONUNBUFFERED": "1"}

    def follow(self, block):
        commands = block.commands.replace("8123", str(self.port))
        block.says = [line.replace("8123", str(self.port)) for line in block.says]
        shell = ["bash", "-euo", "pipefail", "-c", self.kept + commands]
        if block.how == "background":
            self._start(block, shell)
        elif block.how == "until":
            wait_until(lambda: not missing(block, self._run(shell).stdout), timeout=30)
        else:
            done = self._run(shell)
            assert done.returncode == 0, f"{commands}\n{done.stdout}"
            assert missing(block, done.stdout) == [], f"{commands}\n{done.stdout}"
        self.kept += "".join(f"{line}\n" for line in commands.splitlines() if KEPT.match(line))

    def _run(self, shell):
        return subprocess.run(
            shell,
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )

    def _start(self, block, shell):
        process = self.shells.enter_context(RunningProcess(*shell, env=self.env, cwd=self.folder))
        self.shells.callback(process.interrupt, timeout=30)
        wait_until(lambda: not missing(block, process.output), timeout=60)


@pytest.fixture
def reader(tmp_path):
    """In a copy whose .venv is the one that runs this test."""
    folder = tmp_path / "stega"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "staticfiles", "tests"))
    (folder / ".venv").mkdir()
    for entry in Path(sys.prefix).iterdir():
        (folder / ".venv" / entry.name).symlink_to(entry)
    (folder / ".venv" / "stega-installed").unlink(missing_ok=True)  # the link: what it leads to stays as it is
    (folder / ".venv" / "stega-installed").touch()
    with ExitStack() as shells:
        shells.callback(lambda: embedded.project_server(folder).delete())
        yield Reader(folder, free_port(), shells)


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(180)
def test_everything_the_guide_says_happens(reader):
    begun = time.monotonic()

    for block in blocks(GUIDE):
        reader.follow(block)

    assert time.monotonic() - begun < 120


def test_both_languages_give_the_same_commands():
    assert [block.commands for block in blocks(PORTUGUESE)] == [block.commands for block in blocks(GUIDE)]
    assert [block.says for block in blocks(PORTUGUESE)] == [block.says for block in blocks(GUIDE)]


def test_a_promise_that_does_not_come_true_is_noticed():
    block = Block("", "", ["… 1 mail", "To: customer@stega.example"])

    assert missing(block, "worker: 1 mail\n") == ["To: customer@stega.example"]

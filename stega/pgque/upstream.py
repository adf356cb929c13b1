"""Upstream's repository of PgQue, read with git: its tags, and the files of one tag."""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

PATHS = {"pgque.sql": "sql/pgque.sql", "LICENSE": "LICENSE", "NOTICE": "NOTICE"}  # our name -> path in the repository
OPTIONAL = {"NOTICE"}
GIT_SECONDS = 120.0

_OPTIONS = [
    *("-c", "protocol.ext.allow=never"),  # whatever the user's own configuration says
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=30"),
]


class UpstreamError(Exception):
    """Upstream's repository cannot be read; the message is one line that says why and what to do."""


@dataclass(frozen=True)
class Release:
    """What one tag holds. The commit says which; a tag may be moved."""

    tag: str
    commit: str
    files: dict[str, bytes]


def is_tag_name(text: str) -> bool:
    """Whether git accepts the name, and it can be mistaken for no option, pattern or other revision."""
    if len(text) > 100 or ".." in text or text.endswith((".", ".lock")):
        return False
    return re.fullmatch(r"[0-9A-Za-z](?:[0-9A-Za-z._+-]|/(?=[0-9A-Za-z]))*", text) is not None


def newest_first(tags: Iterable[str]) -> list[str]:
    """In the order of versions: a pre-release is older than its release, what is no version comes last."""
    return sorted(tags, key=_version, reverse=True)


def _version(tag: str) -> tuple[bool, list[int], bool, list[tuple[int, str]]]:
    match = re.fullmatch(r"v?([0-9]+(?:\.[0-9]+)*)(.*)", tag)
    numbers, rest = (match[1].split("."), match[2]) if match else ([], tag)
    words = [(int(word), "") if word.isdecimal() else (-1, word) for word in re.findall(r"[0-9]+|[^0-9]+", rest)]
    return bool(match), [int(number) for number in numbers], not rest, words


def without_credentials(url: str) -> str:
    return re.sub(r"^(https?://)[^/]*@", r"\1", url)


class Upstream:
    """A repository, read through a temporary bare repository that lives as long as this context.

    Never asks for a password, never runs a hook or a shell, and gives up on a silent server after GIT_SECONDS.
    Raises UpstreamError.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.shown_url = without_credentials(url)
        if not url or url.startswith("-") or not url.isprintable():
            raise UpstreamError(f"{self.shown_url!r} is no address of a git repository.")

    def __enter__(self) -> Self:
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="stega-upstream-")
        except OSError as error:
            raise UpstreamError(f"no temporary folder can be made: {error.strerror}.") from None
        try:
            self._git("init", "--quiet", "--bare", "--template=")
        except UpstreamError:
            self._folder.cleanup()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._folder.cleanup()

    def tags(self) -> dict[str, str]:
        """Tag -> commit, newest first."""
        commits = {}
        for line in self._git("ls-remote", "--tags", "--", self.url).decode(errors="replace").splitlines():
            commit, _, ref = line.partition("\t")
            # An annotated tag comes twice, with the tag's own id first and its commit second.
            commits[ref.removeprefix("refs/tags/").removesuffix("^{}")] = commit
        return {tag: commits[tag] for tag in newest_first(filter(is_tag_name, commits))}

    def release(self, tag: str) -> Release:
        if not is_tag_name(tag):
            raise UpstreamError(f"{tag!r} is no name of a tag.")
        tags = self.tags()
        if tag not in tags:
            newest = ", ".join(list(tags)[:3]) or "none"
            raise UpstreamError(f"{self.shown_url} has no tag {tag}. Its newest: {newest}.")
        ref = f"refs/tags/{tag}"
        self._git("fetch", "--quiet", "--depth=1", "--no-tags", "--", self.url, f"{ref}:{ref}")
        commit = self._git("rev-parse", "--verify", f"{ref}^{{commit}}").decode().strip()
        present = self._plain_files(commit)
        for name, path in PATHS.items():
            if path not in present and name not in OPTIONAL:
                raise UpstreamError(f"{tag} of {self.shown_url} has no file {path}: it is no PgQue that can be used.")
        files = {
            name: self._git("cat-file", "blob", f"{commit}:{path}") for name, path in PATHS.items() if path in present
        }
        return Release(tag, commit, files)

    def _plain_files(self, commit: str) -> set[str]:
        """Those of PATHS that the commit has; a symbolic link is none."""
        entries = self._git("ls-tree", "-z", commit, "--", *PATHS.values()).decode(errors="replace").split("\0")
        return {entry.partition("\t")[2] for entry in entries if entry.startswith("100")}

    def _git(self, *arguments: str) -> bytes:
        command = ["git", f"--git-dir={self._folder.name}", *_OPTIONS, *arguments]
        try:
            done = _run(command)
        except FileNotFoundError:
            raise UpstreamError("git is not installed, and upstream is read with it: install git.") from None
        except subprocess.TimeoutExpired:
            raise UpstreamError(f"{self.shown_url} did not answer within {GIT_SECONDS:.0f} s.") from None
        except OSError as error:
            raise UpstreamError(f"git cannot be run: {error.strerror}.") from None
        if done.returncode != 0:
            raise UpstreamError(
                f"git cannot read {self.shown_url}: {self._words(done)}. "
                "Check the network and the address (--repository or PGQUE_REPOSITORY)."
            )
        return done.stdout

    def _words(self, done: subprocess.CompletedProcess[bytes]) -> str:
        """Git's own words up to its first fatal ones, on one line, without credentials and control characters."""
        text = done.stderr.decode(errors="replace").replace(self.url, self.shown_url)
        before, _, fatal = text.partition("fatal: ")
        lines = [*before.splitlines(), *fatal.splitlines()[:1]]
        words = " ".join("".join(letter if letter.isprintable() else " " for letter in "\n".join(lines)).split())
        return words.rstrip(".")[:500] or f"exit code {done.returncode}"


def _run(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Run it in a session of its own: without a terminal to ask for a password, and ended with all its children."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=GIT_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

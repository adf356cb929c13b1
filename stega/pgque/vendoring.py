"""Upstream's PgQue on this disk, `vendor/pgque/upstream/`: putting a tag there, and whether it is still what came."""

import difflib
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from stega.pgque.upstream import OPTIONAL, PATHS, Release

MANIFEST = "SOURCE.json"
SCRIPT = "pgque.sql"
UPDATE = "python manage.py pgque_vendor update"


class VendoringError(Exception):
    """What is on this disk cannot be read or written; the message is one line that says why and what to do."""


class State(StrEnum):
    """A file, compared with the manifest."""

    OK = "ok"
    DIFFERS = "differs"
    MISSING = "missing"
    UNKNOWN = "not in SOURCE.json"


@dataclass(frozen=True)
class Source:
    """The manifest: where the files came from, and their checksums."""

    repo: str
    tag: str
    commit: str
    downloaded_at: str
    files: dict[str, str]

    @property
    def is_whole(self) -> bool:
        texts = (self.repo, self.tag, self.commit, self.downloaded_at)
        return (
            all(isinstance(text, str) for text in texts)
            and isinstance(self.files, dict)
            and PATHS.keys() - OPTIONAL <= self.files.keys() <= PATHS.keys()
            and all(re.fullmatch("sha256:[0-9a-f]{64}", str(value)) for value in self.files.values())
        )


@dataclass(frozen=True)
class Inspection:
    """The manifest and the state of every file that it names, or that is there without being named."""

    source: Source | None
    states: dict[str, State]
    problem: str | None

    @property
    def is_ok(self) -> bool:
        return self.source is not None and set(self.states.values()) == {State.OK}


@dataclass(frozen=True)
class Comparison:
    """Our script against a release: a unified diff whose plus lines are the release's."""

    is_different: bool
    text: str


def checksum(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def manifest(release: Release, repo: str, now: datetime) -> Source:
    downloaded_at = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    files = {name: checksum(content) for name, content in sorted(release.files.items())}
    return Source(repo, release.tag, release.commit, downloaded_at, files)


def moved(source: Source | None, release: Release) -> str | None:
    """Says so when the vendored tag now means another commit."""
    if source is None or source.tag != release.tag or source.commit == release.commit:
        return None
    return f"The tag {release.tag} was moved, from commit {source.commit} to {release.commit}."


def inspect(folder: Path) -> Inspection:
    """What is there. A manifest that cannot be used is a problem, not an error; raises VendoringError for the rest."""
    with _reading(folder):
        try:
            source = _read(folder)
        except VendoringError as error:
            return Inspection(None, {}, str(error))
        if source is None:
            return Inspection(None, {}, f"nothing is vendored yet. Fetch it: {UPDATE} TAG (see: pgque_vendor list)")
        states = {name: _state(folder / name, source.files.get(name)) for name in PATHS}
        return Inspection(source, {name: state for name, state in states.items() if state}, None)


def script(folder: Path) -> str:
    """Upstream's install script, once it agrees with the manifest. One put there by hand, without any, is taken as is.

    Raises VendoringError.
    """
    with _reading(folder):
        content, source = _script(folder), _read(folder)
    if source and checksum(content) != source.files[SCRIPT]:
        raise VendoringError(f"{SCRIPT} is not the one of {source.tag}. Fetch it again: {UPDATE} {source.tag}")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise VendoringError(f"{SCRIPT} is no UTF-8 text. Fetch another: {UPDATE} TAG") from None


def compare(folder: Path, release: Release) -> Comparison:
    """Raises VendoringError when there is no script of ours to compare."""
    with _reading(folder):
        ours = _script(folder)
    theirs = release.files[SCRIPT]
    before, after = (content.decode(errors="backslashreplace").split("\n") for content in (ours, theirs))
    names = f"upstream/{SCRIPT}", f"{PATHS[SCRIPT]} of {release.tag}"
    return Comparison(ours != theirs, "\n".join(difflib.unified_diff(before, after, *names, lineterm="")))


def write(folder: Path, release: Release, source: Source) -> None:
    """Put the release in place of what is there: all of it or, whatever goes wrong, nothing.

    A new folder is filled beside the old one and takes its place by two renames; should the process be killed between
    them, whoever comes next puts the old one back. Any number may run at once. Raises VendoringError.
    """
    document = json.dumps(asdict(source), indent=2, ensure_ascii=False) + "\n"
    new = folder.with_name(f".{folder.name}.new")
    try:
        with _locked(folder, fcntl.LOCK_EX):
            try:
                _fill(new, release.files | {MANIFEST: document.encode()})
                _swap(folder, new)
            finally:
                _put_back(folder)
                _remove(new)
            _remove(_aside(folder))
    except OSError as error:
        raise VendoringError(f"{folder} cannot be written, and is as it was: {error.strerror}.") from None


def _read(folder: Path) -> Source | None:
    try:
        text = (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    with suppress(ValueError, TypeError, RecursionError):
        source = Source(**json.loads(text))
        if source.is_whole:
            return source
    raise VendoringError(f"{MANIFEST} is damaged. Fetch the files again: {UPDATE} TAG")


def _state(path: Path, expected: str | None) -> State | None:
    try:
        actual = checksum(path.read_bytes())
    except FileNotFoundError:
        return State.MISSING if expected else None
    if expected is None:
        return State.UNKNOWN
    return State.OK if actual == expected else State.DIFFERS


def _script(folder: Path) -> bytes:
    try:
        return (folder / SCRIPT).read_bytes()
    except FileNotFoundError:
        raise VendoringError(f"upstream's {SCRIPT} is not there. Fetch it: {UPDATE} TAG") from None


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    try:
        with _locked(folder, fcntl.LOCK_SH):
            yield
    except OSError as error:
        raise VendoringError(f"{folder} cannot be read: {error.strerror}.") from None


@contextmanager
def _locked(folder: Path, kind: int) -> Iterator[None]:
    """One writer or many readers at a time. The lock is on the folder above: no file is left, readers need no right."""
    descriptor = os.open(folder.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, kind)
        with suppress(OSError):
            _put_back(folder)
        yield
    finally:
        os.close(descriptor)


def _fill(new: Path, files: dict[str, bytes]) -> None:
    _remove(new)
    new.mkdir()
    for name, content in files.items():
        with (new / name).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _swap(folder: Path, new: Path) -> None:
    if os.path.lexists(folder):
        _remove(_aside(folder))
        folder.rename(_aside(folder))
    new.rename(folder)


def _put_back(folder: Path) -> None:
    if not os.path.lexists(folder) and os.path.lexists(_aside(folder)):
        _aside(folder).rename(folder)


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)

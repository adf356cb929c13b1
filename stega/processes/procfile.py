"""The processes of a Procfile, run together on one terminal."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TextIO

import psutil
from honcho.colour import get_colours
from honcho.environ import parse_procfile
from honcho.printer import Message, Printer

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
END_SECONDS = 10.0
MARK = "STEGA_STARTED_FROM"
"""Environment variable of every started process: the folder whose start it belongs to."""


@dataclass
class Started:
    name: str
    process: subprocess.Popen[bytes]
    reader: threading.Thread = field(init=False)


class Runner:
    """Run processes until one ends or `stop()` is called; then end them all: SIGTERM, and SIGKILL after 10 s.

    Each process leads a session of its own, so that the terminal's Ctrl+C reaches this runner alone.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], output: TextIO) -> None:
        self.folder = folder
        self.environment = {**environment, MARK: str(folder)}
        self._printer = Printer(output)
        self._colours = get_colours()
        self._commands: dict[str, str] = {}
        self._started: list[Started] = []
        self._printing = threading.Lock()
        self._pipe_read, self._pipe_write = os.pipe()

    def add(self, name: str, command: str) -> None:
        self._commands[name] = command
        self._printer.width = max(self._printer.width, len(name))

    def run(self) -> str | None:
        """Return what ended by itself, such as "web ended with code 1", or None after `stop()`. Main thread only."""
        try:
            with on_signals(lambda: self.stop()):
                for name, command in self._commands.items():
                    self._start(name, command)
                select.select([self._pipe_read], [], [])
                return self._first_ended()
        finally:
            with on_signals(lambda: None):
                self._end()

    def stop(self) -> None:
        """Safe from a signal handler or another thread, and twice."""
        os.write(self._pipe_write, b"x")

    def _start(self, name: str, command: str) -> None:
        process = subprocess.Popen(
            f"exec {command}",
            shell=True,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started = Started(name, process)
        started.reader = threading.Thread(target=self._read, args=[started, next(self._colours)], daemon=True)
        self._started.append(started)
        started.reader.start()

    def _read(self, started: Started, colour: str) -> None:
        assert started.process.stdout is not None
        with started.process.stdout as lines:
            for line in lines:
                with self._printing, contextlib.suppress(OSError):  # a closed terminal must not block the process
                    self._printer.write(
                        Message("line", line, datetime.fromtimestamp(time.time()), started.name, colour)
                    )
        started.process.wait()
        self.stop()

    def _first_ended(self) -> str | None:
        for started in self._started:
            code = started.process.poll()
            if code is not None:
                return f"{started.name} ended with code {code}"
        return None

    def _end(self) -> None:
        for started in self._started:
            started.process.terminate()
        deadline = time.monotonic() + END_SECONDS
        for started in self._started:
            started.reader.join(max(0.0, deadline - time.monotonic()))
        for started in self._started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(started.process.pid, signal.SIGKILL)
        for started in self._started:
            started.reader.join()


def commands(procfile: Path, replicas: Mapping[str, int]) -> dict[str, str]:
    """Process name -> command, the name numbered where several replicas are wanted."""
    found = {}
    for name, command in parse_procfile(procfile.read_text()).processes.items():
        wanted = replicas.get(name, 1)
        for number in range(1, wanted + 1):
            found[name if wanted == 1 else f"{name}.{number}"] = command
    return found


def end_leftovers(folder: Path) -> int:
    """Kill what a start from this folder left behind when it was itself killed; how many processes."""
    leftovers = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == str(folder) and process.pid != os.getpid():
                leftovers.append(process)
    for process in leftovers:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(leftovers, timeout=END_SECONDS)
    return len(leftovers)


@contextlib.contextmanager
def on_signals(action: Callable[[], None]) -> Iterator[None]:
    """Answer Ctrl+C, SIGTERM and a closed terminal with `action`. Main thread only."""

    def answer(number: int, frame: FrameType | None) -> None:
        action()

    previous = {number: signal.signal(number, answer) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _local_time() -> datetime:
    return datetime.fromtimestamp(time.time())

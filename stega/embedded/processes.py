"""The processes of a server, found by the data folder that they work in."""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

STOP_SECONDS = 30.0


def leader(data: Path) -> int | None:
    """The process id of the server that holds the data, or None; a stale pid file counts as none."""
    recorded = _recorded_pid(data)
    return recorded if recorded in {process.pid for process in working_in(data)} else None


def working_in(data: Path) -> "list[psutil.Process]":
    """Every process that works in the data folder: the server and its children, orphans included."""
    import psutil  # comes with the embedded package, which production does not install

    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name() == "postgres" and process.cwd() == str(data):
                found.append(process)
    return found


def end(data: Path, how: signal.Signals) -> None:
    """Signal the server and wait for all its processes; those that stay are killed."""
    first = leader(data)
    if first is None or not _signal_and_wait(data, [first], how):
        _signal_and_wait(data, [process.pid for process in working_in(data)], signal.SIGKILL)


def _signal_and_wait(data: Path, pids: list[int], how: signal.Signals) -> bool:
    """Whether every process of the server is gone in time."""
    processes = working_in(data)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, how)
    deadline = time.monotonic() + STOP_SECONDS
    pause = threading.Event()
    while processes := [process for process in processes if _is_alive(process)] or working_in(data):
        if time.monotonic() > deadline:
            return False
        pause.wait(0.02)
    return True


def _recorded_pid(data: Path) -> int | None:
    with suppress(FileNotFoundError, ValueError, IndexError):
        return int((data / "postmaster.pid").read_text().split()[0])
    return None


def _is_alive(process: "psutil.Process") -> bool:
    """A zombie is not: its parent may be any process of ours, and may never look."""
    import psutil  # comes with the embedded package, which production does not install

    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False

"""A supervisor of real processes: starts again what ends, hears every line, kills when told to."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.chaos.judging import Turn
from tests.support.processes import ROOT

RESTART_SECONDS = 0.5
"""Between the end of a process and its next start."""
SAMPLE_SECONDS = 3.0
MIB = 2**20


class Supervised:
    """One instance of a command, through all its starts."""

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.name = name
        self.command = command
        self.env = env
        self._is_wanted = True
        self._changing = threading.Lock()
        self.starts = 0
        self.kills = 0
        self.ends: list[tuple[float, int | None]] = []
        """When it ended by itself, and with what exit code."""
        self.lines: list[tuple[float, str]] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader = threading.Thread()
        self._start_at = 0.0

    def tend(self) -> None:
        """Start it, or start it again a moment after it has ended; not any more once it was asked to end."""
        now = time.monotonic()
        with self._changing:
            if not self._is_wanted:
                return
            if self._process is not None and self._process.poll() is not None:
                self._note_end(now)
            if self._process is None and now >= self._start_at:
                self._start()

    def kill(self, chance: random.Random) -> None:
        """SIGKILL to the process, or to one of its own workers where it has some."""
        if self._process is None or self._process.poll() is not None:
            return
        with suppress(psutil.Error):
            family = [self._process.pid, *(child.pid for child in self._children())]
            self.kills += 1
            os.kill(chance.choice(family), signal.SIGKILL)

    def end(self) -> None:
        """End it for good: SIGTERM, and SIGKILL to the whole group when that does not help within 10 s."""
        with self._changing:
            self._is_wanted = False
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    def mebibytes(self) -> float:
        """Resident memory of the process and its children; 0 when it does not run."""
        if self._process is None or self._process.poll() is not None:
            return 0.0
        with suppress(psutil.Error):
            family = [psutil.Process(self._process.pid), *self._children()]
            return float(sum(each.memory_info().rss for each in family)) / MIB
        return 0.0

    @property
    def hung(self) -> bool:
        """Whether it did not end by itself when it was asked to."""
        return any("did not stop in time" in line for _, line in self.lines)

    @property
    def age(self) -> float:
        return time.monotonic() - self._start_at

    def turns(self) -> list[Turn]:
        """When it came to lead the tickers."""
        return [Turn(at, self.name, "leads") for at, line in self.lines if line.endswith("ticker leads")]

    def _children(self) -> list[psutil.Process]:
        """The guard and the workers of a cluster; nobody else has any, and looking for them is expensive."""
        if self._process is None or not self.name.startswith("qcluster"):
            return []
        children: list[psutil.Process] = psutil.Process(self._process.pid).children(recursive=True)
        return children

    def _start(self) -> None:
        self._start_at = time.monotonic()
        self.starts += 1
        self._process = subprocess.Popen(
            self.command,
            cwd=ROOT,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._listen, args=[self._process], daemon=True)
        self._reader.start()

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.lines.append((time.monotonic(), line.rstrip()))
        process.stdout.close()

    def _note_end(self, now: float) -> None:
        assert self._process is not None
        code = self._process.returncode
        if code != -signal.SIGKILL:
            self.ends.append((now, code))
        self._process = None
        self._start_at = now + RESTART_SECONDS


class Supervisor:
    """Tends its instances from a thread while the context is open; ends them all after it."""

    def __init__(self, instances: Sequence[Supervised]) -> None:
        self.instances = {each.name: each for each in instances}
        self.turns: list[Turn] = []
        self.memory: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tend, name="supervisor", daemon=True)

    def kill(self, name: str, chance: random.Random) -> None:
        self.turns.append(Turn(time.monotonic(), name, "killed"))
        self.instances[name].kill(chance)

    @property
    def kills(self) -> Counter[str]:
        return Counter({name: each.kills for name, each in self.instances.items()})

    def all_turns(self) -> list[Turn]:
        return [*self.turns, *(turn for each in self.instances.values() for turn in each.turns())]

    def write_logs(self) -> Path:
        """A new folder with what each instance said."""
        folder = Path(tempfile.mkdtemp(prefix="stega-chaos-logs-"))
        for name, each in self.instances.items():
            folder.joinpath(name).write_text("".join(f"{at:.3f} {line}\n" for at, line in each.lines))
        return folder

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        enders = [threading.Thread(target=each.end) for each in self.instances.values()]
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()

    def _tend(self) -> None:
        sampled_at = 0.0
        while not self._ended.wait(0.05):
            for each in self.instances.values():
                each.tend()
            now = time.monotonic()
            if now - sampled_at >= SAMPLE_SECONDS:
                sampled_at = now
                self._sample(now)

    def _sample(self, now: float) -> None:
        """The memory of those that have had the time to start."""
        for name, each in self.instances.items():
            if each.age > 5 and (mebibytes := each.mebibytes()):
                self.memory[name.split(".")[0]].append((now, mebibytes))


def instance(name: str, env: Mapping[str, str], *arguments: str) -> Supervised:
    """An instance of the management command whose name stands before the dot."""
    return Supervised(name, [sys.executable, "manage.py", name.split(".")[0], *arguments], env)

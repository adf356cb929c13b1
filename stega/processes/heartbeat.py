"""The heartbeat that health checks read: a file per process that says until when its last good step counts."""

import fcntl
import logging
import os
import time
from io import FileIO
from pathlib import Path

from django.conf import settings

logger = logging.getLogger(__name__)


class Heartbeat:
    """`<command>-<pid>` in STEGA_RUN_DIR, locked for as long as the process lives: the lock tells the living
    from the dead.

    Times are of the machine's monotonic clock, which no clock change moves. A folder that cannot be written to costs
    the health check, not the process.
    """

    def __init__(self, name: str) -> None:
        self.path = Path(settings.STEGA_RUN_DIR) / f"{name}-{os.getpid()}"
        self._file: FileIO | None = None
        self._good_until = 0.0

    def start(self) -> None:
        """Write the first beat. The file appears locked, so that no check takes it for a dead process's."""
        unborn = self.path.with_name(f".{self.path.name}")
        try:
            unborn.parent.mkdir(parents=True, exist_ok=True)
            self._file = FileIO(unborn, "w")
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self.beat()
            unborn.rename(self.path)
        except OSError as error:
            logger.warning("No heartbeat for health checks: %s", error)
            self._file = None

    def beat(self, wait: float = 0.0) -> None:
        """A good step was taken, and the next may begin after `wait` seconds. Costs a write once a second at most."""
        good_until = time.monotonic() + wait + settings.HEALTHY_SECONDS
        if self._file is None or good_until < self._good_until + 1:
            return
        self._good_until = good_until
        os.pwrite(self._file.fileno(), f"{good_until:020.3f}".encode(), 0)

    def end(self) -> None:
        if self._file is not None:
            self.path.unlink(missing_ok=True)
            self._file.close()


def check(name: str) -> tuple[bool, str]:
    """Whether every process of the command on this machine is well, and there is one; and a line that says so."""
    good_until = _living(name)
    if not good_until:
        return False, f"no {name} runs here"
    now = time.monotonic()
    ill = [pid for pid, until in good_until.items() if until < now]
    if ill:
        return False, f"{name} {', '.join(ill)}: no good step for more than {settings.HEALTHY_SECONDS:g} s"
    return True, f"{name} {', '.join(good_until)}: well"


def _living(name: str) -> dict[str, float]:
    """Process id -> until when it is well; the files of the dead are removed."""
    living: dict[str, float] = {}
    for path in Path(settings.STEGA_RUN_DIR).glob(f"{name}-*"):
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                living[path.name.removeprefix(f"{name}-")] = float(file.read() or 0)
            else:
                path.unlink(missing_ok=True)
    return living

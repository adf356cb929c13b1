"""The system user that a server runs as."""

import os
import pwd
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from stega.embedded.errors import EmbeddedError

UNPRIVILEGED_USERS = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int

    @property
    def popen_arguments(self) -> dict[str, Any]:
        if os.geteuid() == self.uid:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    @classmethod
    def own(cls) -> Self:
        return cls._of(pwd.getpwuid(os.geteuid()))

    @classmethod
    def owning(cls, folder: Path) -> Self:
        return cls._of(pwd.getpwuid(folder.stat().st_uid))

    @classmethod
    def unprivileged(cls) -> Self:
        """Whom root lets run a server, since PostgreSQL refuses to run as root."""
        for name in UNPRIVILEGED_USERS:
            with suppress(KeyError):
                return cls._of(pwd.getpwnam(name))
        wanted = " or ".join(UNPRIVILEGED_USERS)
        raise EmbeddedError(f"PostgreSQL refuses to run as root, and there is no user {wanted} to run it.")

    @classmethod
    def _of(cls, entry: pwd.struct_passwd) -> Self:
        return cls(entry.pw_name, entry.pw_uid, entry.pw_gid)

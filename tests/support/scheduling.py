"""Which tests of a parallel run stay together. The groups of xdist 3.8 are no groups under pytest 9.2."""

from xdist.scheduler import LoadScopeScheduling

TOGETHER = {
    "tests/operations/test_console_plans.py",
    "tests/operations/test_plans.py",
    "tests/stega/installation/test_provisioning.py",
    "tests/stega/test_up.py",
    "tests/tickets/test_plans.py",
}
"""Files whose tests share what takes long to make, or a port: one worker runs all of a file."""


class Scheduler(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """What `--dist loadgroup` means here: these files as a whole and first, then each other test by itself."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if path in TOGETHER else nodeid

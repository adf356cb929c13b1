"""What a health check hears."""

from stega.processes import heartbeat
from stega.processes.startup import refuse


def tell_health(name: str) -> None:
    """Print whether the command's processes on this machine are well; exit with 1 when they are not, or none runs.

    Needs the settings and no application, no database.
    """
    is_well, line = heartbeat.check(name)
    if not is_well:
        refuse(line)
    print(line)  # noqa: T201 - this is the command's own voice

"""The embedded PostgreSQL of a machine without database URLs: real binaries, one server, one private Unix socket."""

from pathlib import Path

from stega.embedded.errors import EmbeddedError
from stega.embedded.server import Server

__all__ = ["DATABASES", "EmbeddedError", "Server", "project_server", "urls"]

DATABASES = {"default": "stega_app", "jobs": "stega_jobs", "events": "stega_events"}


def urls(project_root: Path) -> dict[str, str]:
    """The URL of each database alias on the embedded server of this project; starts nothing."""
    server = project_server(project_root)
    return {alias: server.url(database) for alias, database in DATABASES.items()}


def project_server(project_root: Path) -> Server:
    return Server(project_root / ".stega")

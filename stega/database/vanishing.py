"""A host that vanishes (power, a cut cable) says nothing: each side of a connection has to look for the other itself.

Else the session of such a host keeps its locks, the lead among them, for as long as its server's kernel has patience,
which is two hours usually.
"""

from collections.abc import Mapping
from typing import Any

OF_CLIENT = {
    "tcp_user_timeout": 20_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}
"""libpq's options. A host is given up after some 20 s, whether something was sent to it meanwhile or not."""

_OF_SERVER = {
    "tcp_user_timeout": "tcp_user_timeout",
    "tcp_keepalives_idle": "keepalives_idle",
    "tcp_keepalives_interval": "keepalives_interval",
    "tcp_keepalives_count": "keepalives_count",
}


def of_server(options: Mapping[str, Any]) -> dict[str, str]:
    """PostgreSQL's settings by which the server looks for its client as libpq's options let that look for its server.

    Any role may set them; on Unix sockets they do nothing.
    """
    return {name: str(options[option]) for name, option in _OF_SERVER.items() if option in options}

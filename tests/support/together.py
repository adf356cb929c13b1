"""Several at the same moment, as processes are."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")


def at_once(do: Callable[[Argument], Answer], arguments: Iterable[Argument]) -> list[Answer]:
    """What `do` returns for each argument, called with all of them at once, on connections of their own.

    Raises what one of the calls raised.
    """
    arguments = list(arguments)
    start = threading.Barrier(len(arguments), timeout=20)

    def begin(argument: Argument) -> Answer:
        try:
            start.wait()
            return do(argument)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(begin, arguments))

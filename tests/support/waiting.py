"""Waiting for something to become true: the only file of the tests that may sleep."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_until(predicate: Callable[[], Value], timeout: float, interval: float = 0.02) -> Value:
    """The first true value of `predicate`; AssertionError when there is none within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not true within {timeout:g} s: {predicate}")
        time.sleep(interval)  # noqa: TID251 - this is the one place
    return value

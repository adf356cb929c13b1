"""Call something that may hang, for a bounded time, without holding up whoever asked."""

import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class BoundedCaller:
    """Run calls one after the other on a daemon thread of its own, so that its database connections persist.

    A call that outlives its time-out goes on in the background; until it ends, `stuck` is true and further calls would
    only queue behind it. The thread never delays the end of the process. Made anew in a forked child.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._pid = 0
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._abandoned: Future[Any] | None = None
        self._lock = threading.Lock()

    @property
    def stuck(self) -> bool:
        return self._pid == os.getpid() and self._abandoned is not None and not self._abandoned.done()

    def call(self, function: Callable[[], Any], *, seconds: float) -> Any:
        """The function's result; raises what it raises, TimeoutError when it takes longer, its turn included."""
        return self.end(self.begin(function), seconds=seconds)

    def begin(self, function: Callable[[], Any]) -> "Future[Any]":
        """Put the call in the line, and come back at once."""
        with self._lock:
            if self._pid != os.getpid():
                self._start()
        future: Future[Any] = Future()
        self._calls.put((future, function))
        return future

    def end(self, future: "Future[Any]", *, seconds: float) -> Any:
        """Wait for the result of a call that was begun; raises as `call` does."""
        try:
            return future.result(timeout=seconds)
        except TimeoutError:
            self._abandoned = future
            raise

    def _start(self) -> None:
        self._pid = os.getpid()
        self._calls = queue.SimpleQueue()
        threading.Thread(target=self._work, args=(self._calls,), name=self._name, daemon=True).start()

    @staticmethod
    def _work(calls: "queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]]") -> None:
        while True:
            future, function = calls.get()
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)

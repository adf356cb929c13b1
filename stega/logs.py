"""How a log line looks: a line for people or a JSON object for machines, each with what it is about."""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from stega.database.outages import is_outage
from stega.wording.text import clean, escaped, traceback_of

_about: ContextVar[Mapping[str, str]] = ContextVar("log_about", default=MappingProxyType({}))


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """Add fields such as `event_key` to every line within. Names and keys alone, never a payload or a secret."""
    token = _about.set({**_about.get(), **_texts(fields)})
    try:
        yield
    finally:
        _about.reset(token)


def begin(**fields: object) -> None:
    """Every further line of this thread is about these fields alone, until the next `begin`."""
    _about.set(_texts(fields))


def _texts(fields: Mapping[str, object]) -> dict[str, str]:
    return {name: clean(str(value), 200) for name, value in fields.items() if value is not None}


class OneLine(logging.Filter):
    """Drops the traceback of what is no fault of the code: a refused request, a database that is away.

    Of the latter Django says "Internal Server Error", but the web's door (stega.web.door) answers 503.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and is_outage(error):
            message = record.getMessage().replace("Internal Server Error: ", "No database for ", 1)
            record.msg, record.args = f"{message}: {' '.join(str(error).split())}", ()
            record.exc_info = record.exc_text = None
        if getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True


class _Formatter(logging.Formatter):
    def formatException(self, ei: Any) -> str:
        return traceback_of(ei[1]) if ei[1] else super().formatException(ei)


class Line(_Formatter):
    """A line for people; what it is about stands at its end.

    Nothing else begins at the first column, whatever strangers wrote: further lines, as of a traceback, are indented.
    """

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        told = " ".join(f"{name}={escaped(value)}" for name, value in _about.get().items())
        return super().formatMessage(record) + (f" [{told}]" if told else "")

    def format(self, record: logging.LogRecord) -> str:
        return _indented(super().format(record))


def _indented(text: str) -> str:
    return "\n    ".join(map(escaped, text.split("\n")))


class Json(_Formatter):
    """One JSON object per line; what it is about are fields of their own."""

    def format(self, record: logging.LogRecord) -> str:
        error = self.formatException(record.exc_info) if record.exc_info else None
        return json_line(record.levelname, record.name, record.getMessage(), error, record.created)


def json_line(level: str, logger: str, message: str, error: str | None = None, at: float | None = None) -> str:
    told = {
        "at": datetime.fromtimestamp(time.time() if at is None else at, UTC).isoformat(timespec="milliseconds"),
        "level": level,
        "logger": logger,
        "process": _process(),
        "pid": os.getpid(),
        "message": message,
        **_about.get(),
    }
    return escaped(json.dumps(told | ({"error": error} if error else {}), ensure_ascii=False))


def tell_crashes(form: str) -> None:
    """Let the last words of a process or thread that a bug ends quote no row of a database, and be as `form` says.

    That is json, one JSON object like every line, or line, a line with Python's traceback under it.
    """

    def tell(error: BaseException, who: str) -> None:
        words, why = f"{who} by {type(error).__name__}", traceback_of(error).rstrip("\n")
        if form == "json":
            line = json_line("CRITICAL", __name__, words, why)
        else:
            line = _indented(f"CRITICAL {__name__}: {words}\n{why}")
        sys.stderr.write(f"{line}\n")

    def of_process(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            tell(error, "ended")

    def of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
            tell(args.exc_value, f"thread {args.thread.name if args.thread else '?'} ended")

    sys.excepthook, threading.excepthook = of_process, of_thread


@cache
def _process() -> str:
    """The management command, or the program."""
    program, *arguments = (Path(argument) for argument in sys.argv or ["python"])
    if program.stem == "manage" and arguments:
        return str(arguments[0])
    return program.parent.name if program.stem == "__main__" else program.stem

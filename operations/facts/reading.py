"""Asking the databases in bounded time: side by side, and with an answer even when one of them gives none."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections, transaction

from stega.bounded import BoundedCaller
from stega.database.outages import is_outage

Value = TypeVar("Value")
Told = TypeVar("Told", covariant=True)

COUNT_LIMIT = 10_000
"""Where counts of rows end, so that a million of them cost no more: this number means "so many or more"."""


class Trouble(StrEnum):
    """Why a database told nothing: words for machines, without anything of its own text."""

    UNREACHABLE = "unreachable"
    SILENT = "silent"
    """It did not answer in time."""
    UNPREPARED = "unprepared"
    """A table or function is missing: not migrated, or no event log."""
    REFUSED = "refused"
    """The role may not ask, or the question failed otherwise."""


@dataclass(frozen=True, slots=True)
class Reading(Generic[Told]):
    """What one database answered to one question: a value, or the trouble instead."""

    alias: str
    value: Told | None = None
    trouble: Trouble | None = None

    @property
    def is_away(self) -> bool:
        """Whether nothing answered, not even with a refusal."""
        return self.trouble in (Trouble.UNREACHABLE, Trouble.SILENT)


@dataclass(frozen=True, slots=True)
class Question(Generic[Told]):
    """`ask` runs in a transaction of its own on the alias, in which every statement is cut short in time."""

    alias: str
    ask: Callable[[], Told]
    is_of_server: bool = False
    """Whether it is about the server itself: then it never waits for one about tables, which a lock may hold up."""


def read(question: Question[Value], seconds: float | None = None) -> Reading[Value]:
    """The answer within `seconds`, FACTS_SECONDS unless given. Never raises for what a database does or fails to do."""
    return read_all({"": question}, seconds)[""]


def read_all(questions: Mapping[str, Question[Any]], seconds: float | None = None) -> dict[str, Reading[Any]]:
    """Every answer within `seconds`: two threads per alias, one for its server and one for its tables, ask their
    questions one after the other.

    A database that hangs keeps its thread; until it lets go, further questions to it are answered "silent" at once.
    """
    seconds = seconds if settings.FACTS_SECONDS and seconds else settings.FACTS_SECONDS
    if not seconds:
        return {name: _answer(question, None) for name, question in questions.items()}
    deadline = time.monotonic() + seconds
    asked = {name: _put(question, seconds) for name, question in questions.items()}
    return {name: _collect(questions[name], future, deadline) for name, future in asked.items()}


_callers: dict[tuple[str, bool], BoundedCaller] = {}
"""By alias, and whether they ask about its server."""


def _put(question: Question[Value], seconds: float) -> "Future[Reading[Value]] | None":
    name = f"facts of {question.alias}{' server' if question.is_of_server else ''}"
    caller = _callers.setdefault((question.alias, question.is_of_server), BoundedCaller(name))
    return None if caller.stuck else caller.begin(lambda: _answer(question, seconds))


def _collect(question: Question[Value], future: "Future[Reading[Value]] | None", deadline: float) -> Reading[Value]:
    if future is None:
        return Reading(question.alias, trouble=Trouble.SILENT)
    caller = _callers[question.alias, question.is_of_server]
    try:
        reading: Reading[Value] = caller.end(future, seconds=max(0.0, deadline - time.monotonic()))
        return reading
    except TimeoutError:
        return Reading(question.alias, trouble=Trouble.SILENT)


def _answer(question: Question[Value], seconds: float | None) -> Reading[Value]:
    connection = connections[question.alias]
    try:
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
        with transaction.atomic(using=question.alias):
            if seconds is not None:
                with connection.cursor() as cursor:
                    cursor.execute("select set_config('statement_timeout', %s, true)", [f"{int(seconds * 1000)}ms"])
            return Reading(question.alias, question.ask())
    except (DatabaseError, InterfaceError) as error:
        return Reading(question.alias, trouble=_trouble(error))


def _trouble(error: Exception) -> Trouble:
    sqlstate = getattr(error.__cause__, "sqlstate", None) or ""
    if sqlstate in ("57014", "55P03"):  # cut short by the time-out, or waiting for a lock
        return Trouble.SILENT
    if sqlstate in ("42P01", "42883", "3F000", "42703"):  # no such table, function, schema, column
        return Trouble.UNPREPARED
    return Trouble.UNREACHABLE if is_outage(error) else Trouble.REFUSED

"""stega/logs.py: what a line says, for people and for machines."""

import json
import logging
import subprocess
import sys

import psycopg
import pytest
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, OperationalError

from stega import logs
from stega.logs import Json, Line, OneLine


@pytest.fixture(autouse=True)
def about_nothing():
    """Lines are about nothing: the last request of an earlier test is not that of this one."""
    logs.begin()
    yield
    logs.begin()


def record_of(error, **extra):
    try:
        raise error
    except Exception:
        record = logging.LogRecord("any", logging.ERROR, "file.py", 1, "It failed: %s", ("x",), sys.exc_info())
    record.__dict__.update(extra)
    OneLine().filter(record)
    return logging.Formatter("%(message)s").format(record)


def test_a_fault_keeps_its_traceback():
    assert "Traceback" in record_of(ValueError("a bug"))
    assert "Traceback" in record_of(ValueError("a bug"), status_code=500)


def test_a_database_that_is_away_is_one_line_with_its_words():
    assert record_of(OperationalError("connection\n refused")) == "It failed: x: connection refused"


def test_a_page_without_its_database_is_not_called_an_error_of_the_server():
    record = logging.makeLogRecord({"msg": "Internal Server Error: %s", "args": ("/tickets/",)})
    record.exc_info = (OperationalError, OperationalError("connection refused"), None)

    OneLine().filter(record)

    assert record.getMessage() == "No database for /tickets/: connection refused"


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_refused_request_is_one_line(status):
    assert record_of(PermissionDenied("no"), status_code=status) == "It failed: x"


def record(message="It happened", **fields):
    return logging.makeLogRecord({"msg": message, "levelname": "INFO", "name": "stega.any", **fields})


def test_a_json_line_is_one_object_with_what_it_is_about():
    with logs.about(event_key="k-1", nothing=None), logs.about(event_id=7):
        line = Json().format(record("Two\nlines and an emoji \N{PARTY POPPER}"))

    told = json.loads(line)
    assert "\n" not in line
    assert told["message"] == "Two\nlines and an emoji \N{PARTY POPPER}"
    assert (told["event_key"], told["event_id"], told["level"], told["logger"]) == ("k-1", "7", "INFO", "stega.any")
    assert "nothing" not in told
    assert told["at"].endswith("+00:00")


def test_a_json_line_holds_the_traceback():
    try:
        raise ValueError("a bug")
    except ValueError:
        told = json.loads(Json().format(record(exc_info=sys.exc_info())))

    assert told["error"].startswith("Traceback")


@pytest.mark.parametrize("formatter", [Json(), Line()])
def test_a_traceback_quotes_nothing_that_a_database_said(formatter):
    words = " ".join(["Failing row contains (72,", "my", "secret)"])
    try:
        try:
            raise psycopg.errors.UniqueViolation(words)
        except psycopg.Error as refusal:
            raise IntegrityError(str(refusal)) from refusal
    except IntegrityError:
        line = formatter.format(record(exc_info=sys.exc_info()))

    assert words not in line
    assert "UniqueViolation 23505" in line
    assert "test_logs.py" in line


def test_a_line_for_people_ends_with_what_it_is_about():
    with logs.about(event_key="k-1"):
        assert Line().format(record()) == "INFO stega.any: It happened [event_key=k-1]"


FORGED = "x\nCRITICAL django.security: root signed in\r\x1b[31m\x9b2J\u2028\u202e"


def test_nothing_but_a_new_line_begins_at_the_first_column():
    with logs.about(event_key="k\nCRITICAL any: forged"):
        told = Line().format(record(FORGED))

    first, further = told.splitlines()
    assert first == "INFO stega.any: x"
    assert further == (
        r"    CRITICAL django.security: root signed in\u000d\u001b[31m\u009b2J\u2028\u202e"
        r" [event_key=k\u000aCRITICAL any: forged]"
    )


def test_a_traceback_of_a_line_for_people_is_indented():
    try:
        raise ValueError(FORGED)
    except ValueError:
        first, *further = Line().format(record(exc_info=sys.exc_info())).splitlines()

    assert first == "INFO stega.any: It happened"
    assert further[0] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") for line in further)


def test_a_json_line_commands_no_terminal_and_says_the_same():
    line = Json().format(record(FORGED))

    assert all(sign.isprintable() for sign in line)
    assert json.loads(line)["message"] == FORGED


def test_what_a_line_is_about_ends_with_its_block():
    logs.begin(request_id="r-1")

    with logs.about(event_key="k-1"):
        pass

    assert Line().format(record()).endswith("[request_id=r-1]")


@pytest.fixture
def end(monkeypatch):
    """How a process ends that is set up with this format of its log, and then runs this code."""

    def ended(log_format, code):
        monkeypatch.setenv("STEGA_LOG_FORMAT", log_format)
        monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "stega.settings")
        script = f"import django; django.setup()\n{code}"
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    return ended


REFUSED = """
import threading
from django.db import IntegrityError
from psycopg import errors

def refuse():
    words = " ".join(["Failing row contains (72,", "my", "secret)"])
    try:
        raise errors.UniqueViolation(words)
    except errors.Error as refusal:
        raise IntegrityError(str(refusal)) from refusal
"""
BURIED = """
def bury(depth):
    try:
        bury(depth - 1) if depth else refuse()
    except Exception as error:
        raise ValueError(f"at {depth}: {error}" if depth < 2 else "a bug")

bury(20)
"""


@pytest.mark.parametrize(
    "ends",
    [
        "raise ValueError('a bug')",
        "import stega.processes.startup; stega.processes.startup.refuse('a wrong setting')",
        "import sys, threading; t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join(); sys.exit(1)",
    ],
)
def test_the_last_words_of_a_process_are_one_json_object(end, ends):
    ended = end("json", ends)

    (line,) = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert json.loads(line)["level"] == "CRITICAL"


def test_the_last_words_of_a_process_are_one_line_with_its_traceback_for_people(end):
    ended = end("line", r"raise ValueError('a bug\nCRITICAL any: forged')")

    first, *further = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert first == "CRITICAL stega.logs: ended by ValueError"
    assert further[0] == "    Traceback (most recent call last):"
    assert further[-2:] == ["    ValueError: a bug", "    CRITICAL any: forged"]


@pytest.mark.parametrize("log_format", ["line", "json"])
@pytest.mark.parametrize(
    "ends", ["refuse()", "thread = threading.Thread(target=refuse); thread.start(); thread.join()", BURIED]
)
def test_the_last_words_of_a_process_quote_no_row(end, log_format, ends):
    ended = end(log_format, REFUSED + ends)

    assert "my secret" not in ended.stderr
    assert "UniqueViolation 23505" in ended.stderr

"""stega/logs.py: a traceback is for faults of the code."""

import logging
import sys

import pytest
from django.core.exceptions import PermissionDenied
from django.db import OperationalError

from stega.logs import OneLine


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


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_refused_request_is_one_line(status):
    assert record_of(PermissionDenied("no"), status_code=status) == "It failed: x"

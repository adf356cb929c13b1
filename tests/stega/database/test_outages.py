"""stega/database/outages.py: what is tried again without end, and what is not."""

import pytest
from django.db import DataError, IntegrityError, InterfaceError, InternalError, OperationalError, ProgrammingError

from stega.database.mismatch import OtherSchema
from stega.database.outages import is_outage


def caused(error, sqlstate):
    error.__cause__ = type("Cause", (Exception,), {"sqlstate": sqlstate})()
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OperationalError("connection refused"), True),
        (caused(OperationalError("terminating connection due to administrator command"), "57P01"), True),
        (caused(OperationalError("too many clients already"), "53300"), True),
        (InterfaceError("connection already closed"), True),
        (caused(InternalError("cannot execute INSERT in a read-only transaction"), "25006"), True),
        (caused(InternalError("cache lookup failed for function 4711"), "XX000"), True),
        (caused(OtherSchema("the default database lacks migration tickets.0003"), "42703"), True),
        (caused(ProgrammingError("column does not exist"), "42703"), False),
        (caused(OperationalError("stack depth limit exceeded"), "54001"), False),
        (caused(DataError("invalid byte sequence"), "22021"), False),
        (IntegrityError("duplicate key"), False),
        (ValueError("a bug"), False),
    ],
)
def test_an_outage_is_told_from_a_mistake(error, expected):
    assert is_outage(error) is expected

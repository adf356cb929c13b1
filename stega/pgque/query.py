"""How a statement goes to the event log: on its alias, in autocommit unless the caller opened a transaction."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connections, transaction

ALIAS = "events"

Values = Sequence[Any] | Mapping[str, Any]


def value(sql: str, values: Values = ()) -> Any:
    """The first column of the first row; None where there is none."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(sql, values)
        row = cursor.fetchone()
        return row[0] if row else None


def value_alone(sql: str, values: Values = ()) -> Any:
    """`value` in a transaction of its own: what is sent and ticked in the same one is delivered to nobody."""
    if connections[ALIAS].in_atomic_block:
        raise transaction.TransactionManagementError("Events are ticked and received outside any transaction.")
    return value(sql, values)


def rows(sql: str, values: Values = ()) -> list[dict[str, Any]]:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(sql, values)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

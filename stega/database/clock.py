"""The clock that decides: a database's, which all processes share."""

from datetime import datetime

from django.db import DEFAULT_DB_ALIAS, connections


def now(alias: str = DEFAULT_DB_ALIAS) -> datetime:
    """The moment at which the database was asked, also within a transaction."""
    with connections[alias].cursor() as cursor:
        cursor.execute("select statement_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment

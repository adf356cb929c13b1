"""Django's PostgreSQL, but for what it takes for a connection to be of use."""

import psycopg
from django.db.backends.postgresql import base

from stega.database import driver


class DatabaseWrapper(base.DatabaseWrapper):
    Database = driver.Database  # type: ignore[assignment]  # a module in all but its type

    def is_usable(self) -> bool:
        """Not when its session takes no writes, either: asked after an error, and before a unit of work.

        A session that began while a fail-over was under way stays read-only, as one to a former primary does. Made
        anew, it may reach a server that takes writes again; while none does, it costs a connection per unit of work.
        """
        if self.connection is None:
            return False
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("show transaction_read_only")
                return bool(cursor.fetchone() == ("off",))
        except psycopg.Error:
            return False

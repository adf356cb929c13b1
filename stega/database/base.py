"""Django's PostgreSQL, but for what it takes for a connection to be of use."""

import logging

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base
from django.utils.functional import cached_property

from stega.database import driver, mismatch, plans, vanishing


class DatabaseWrapper(base.DatabaseWrapper):
    Database = driver.Database  # type: ignore[assignment]  # a module in all but its type
    statement_seconds: float | None = None
    """After which the server ends a statement of this process's connections; None: never. Told at their beginning."""
    is_beside = False
    """Whether it is made to find out about an error of another connection."""

    @cached_property
    def wrap_database_errors(self) -> mismatch.ErrorWrapper:
        return mismatch.ErrorWrapper(self)

    def init_connection_state(self) -> None:
        super().init_connection_state()
        limits = vanishing.of_server(self.settings_dict["OPTIONS"])
        if self.statement_seconds is not None:
            limits["statement_timeout"] = f"{self.statement_seconds * 1000:.0f} ms"
        self._limit(limits)
        plans.let_be_kept(self.connection)

    def _limit(self, limits: dict[str, str]) -> None:
        """Set what the server does not limit to less. The intervals are for comparing: of numbers they make seconds.

        Not through a pooler, which would hand the session on as it is: there a limit is a matter of the role.
        """
        statement = """
            select set_config(name, wanted, false)
            from unnest(%(names)s::text[], %(wanted)s::text[]) as limits (name, wanted)
            where pg_backend_pid() = %(pid)s
                and current_setting(name)::interval not between '1 ms' and wanted::interval
        """
        values = {"names": [*limits], "wanted": [*limits.values()], "pid": self.connection.info.backend_pid}
        self.connection.execute(statement, values)

    def is_usable(self) -> bool:
        """Not when its session takes no writes, either: asked after an error, and before a unit of work.

        A session that began while a fail-over was under way stays read-only, as one to a former primary does. Made
        anew, it may reach a server that takes writes again; while none does, it costs a connection per unit of work.
        The session is ended in so many words: a pooler would keep it, and give it to others.
        """
        if self.connection is None:
            return False
        statement = """
            select case current_setting('transaction_read_only')
                when 'on' then pg_terminate_backend(pg_backend_pid()) else false
            end
        """
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(statement)
                return bool(cursor.fetchone() == (False,))
        except psycopg.Error:
            return False

    @property
    def queries_logged(self) -> bool:
        """In debug mode only when somebody reads the log, or asked for it: it is dear, and kept in memory."""
        is_read = logging.getLogger("django.db.backends").isEnabledFor(logging.DEBUG)
        return bool(self.force_debug_cursor or (settings.DEBUG and is_read))

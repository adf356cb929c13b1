"""Who is connected to a database, as its own statistics tell."""

from dataclasses import dataclass
from datetime import timedelta

from django.db import connections


@dataclass(frozen=True, slots=True)
class Session:
    """One connection. `silent_for` is the time since its last statement ended; None where the role may not see it."""

    pid: int
    application: str
    address: str | None
    silent_for: timedelta | None


def others_are_hidden(alias: str) -> bool:
    """Whether there are sessions of other roles that this role may not look into; nothing then follows from silence."""
    statement = """
        select not pg_has_role('pg_read_all_stats', 'usage') and exists (
            select from pg_stat_activity where datname = current_database() and not pg_has_role(usesysid, 'usage')
        )
    """
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
        (is_hidden,) = cursor.fetchone()
    return bool(is_hidden)


def sessions(alias: str) -> tuple[Session, ...]:
    """The other sessions on the alias's database."""
    statement = """
        select pid, application_name, host(client_addr),
            case when state = 'active' then interval '0' else clock_timestamp() - state_change end
        from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    """
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
        return tuple(Session(*row) for row in cursor.fetchall())

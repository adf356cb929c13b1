"""Give the database roles of the processes exactly what stega.privileges says, in one transaction per database."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django.db.utils import ProgrammingError
from psycopg import sql

from stega.preparation import require_prepared
from stega.privileges import KINDS, PUBLIC, WATCHING, Grant, Thing, changes, wanted

SCHEMAS = {"default": "public", "jobs": "public", "events": "pgque"}
WATCHERS = "pg_read_all_stats"

Say = Callable[[str], object]


def provision(prefix: str, passwords: Mapping[str, str], *, reset_passwords: bool, dry_run: bool, say: Say) -> None:
    """Make missing roles and give every role what its kind of process needs in each database, and nothing else.

    Works as the owner of the three databases, who needs CREATEROLE only for roles that are missing. Idempotent; any
    number may run at once. A password reaches the server as a SCRAM verifier. Raises ImproperlyConfigured when a
    database is not prepared, or when a role is left with more than it should have.
    """
    for alias in settings.DATABASES:
        require_prepared(alias)
        roles = {kind: f"{prefix}_{kind}" for kind in KINDS if alias in KINDS[kind]}
        with transaction.atomic(using=alias):
            _rows(alias, "select pg_advisory_xact_lock(hashtext('stega roles'))")
            done = _make_roles(alias, roles, passwords, reset_passwords)
            done += _grant(alias, roles)
            watching, blind = _let_watch(alias, [roles[kind] for kind in WATCHING if kind in roles])
            done += watching
            _refuse_excess(alias, list(roles.values()))
            transaction.set_rollback(dry_run, using=alias)
        for line in [*(done or ["nothing to change"]), *blind]:
            say(f"{alias}: {line}")


def _make_roles(alias: str, roles: Mapping[str, str], passwords: Mapping[str, str], reset: bool) -> list[str]:
    there = {
        name for (name,) in _rows(alias, "select rolname from pg_roles where rolname = any(%s)", [[*roles.values()]])
    }
    done = []
    for kind, role in roles.items():
        password = passwords.get(kind, "")
        if role not in there:
            _make_role(alias, role)
            done.append(f"created role {role}{'' if password else ', without a password'}")
        if password and (reset or role not in there):
            _set_password(alias, role, password)
            done.append(f"set the password of {role}")
    return done


def _make_role(alias: str, role: str) -> None:
    try:
        _rows(alias, f"create role {_quoted(alias, role)} login")
    except ProgrammingError:
        raise ImproperlyConfigured(
            f"on {alias} there is no role {role}, and this connection may not make one: make it as an administrator "
            "(create role ... login), and run the command again."
        ) from None


def _set_password(alias: str, role: str, password: str) -> None:
    """As a verifier, and past Django's cursor, which may log statements."""
    connection = connections[alias].connection
    verifier = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    statement = sql.SQL("alter role {} password {}").format(sql.Identifier(role), sql.Literal(verifier))
    connection.execute(statement)


def _grant(alias: str, roles: Mapping[str, str]) -> list[str]:
    names = {role: _quoted(alias, role) for role in roles.values()}
    shall = wanted(alias, {kind: names[role] for kind, role in roles.items()}, _things(alias))
    done: list[str] = []
    for _ in range(2):  # a privilege on a table takes those on its columns along when it is revoked
        statements = changes(set(_actual(alias, names)), shall)
        for statement in statements:
            _rows(alias, statement)
        done += statements
    return done


def _let_watch(alias: str, watchers: Iterable[str]) -> tuple[list[str], list[str]]:
    """What was done, and what only an administrator can do: one who may pass pg_read_all_stats on."""
    done, left = [], []
    for role in watchers:
        if _rows(alias, "select pg_has_role(%s, %s, 'member')", [role, WATCHERS]) == [(True,)]:
            continue
        statement = f"grant {WATCHERS} to {_quoted(alias, role)}"
        try:
            with transaction.atomic(using=alias):
                _rows(alias, statement)
            done.append(statement)
        except ProgrammingError:
            left.append(f"{role} does not see old transactions of others until an administrator does: {statement}")
    return done, left


def _refuse_excess(alias: str, roles: list[str]) -> None:
    """Whatever came from elsewhere: attributes, ownership, memberships, rights of PUBLIC."""
    statement = """
        select r.rolname, case
            when r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolbypassrls
                then 'is a superuser, or may make roles or databases'
            when has_database_privilege(r.oid, current_database(), 'create, temporary')
                then 'may create schemas or temporary tables'
            when exists (select from pg_namespace n where has_schema_privilege(r.oid, n.oid, 'create'))
                then 'may create in a schema'
            when exists (select from pg_class c where pg_has_role(r.oid, c.relowner, 'member')) then 'owns tables'
        end as excess
        from pg_roles r where r.rolname = any(%s)
    """
    for role, excess in _rows(alias, statement, [roles]):
        if excess:
            raise ImproperlyConfigured(
                f"on {alias}, {role} {excess}: take that away as an administrator, and run the command again."
            )


def _things(alias: str) -> list[Thing]:
    """What the database holds, as far as rights are given on it."""
    statement = """
        select 'database', datname, quote_ident(datname) from pg_database where datname = current_database()
        union all select 'schema', nspname, quote_ident(nspname) from pg_namespace where nspname = %(schema)s
        union all
        select case relkind when 'S' then 'sequence' else 'table' end,
            case when %(schema)s = 'public' then relname else %(schema)s || '.' || relname end, c.oid::regclass::text
        from pg_class c where relnamespace = to_regnamespace(%(schema)s) and relkind in ('r', 'p', 'v', 'm', 'S')
        union all
        select 'function', %(schema)s || '.' || proname, p.oid::regprocedure::text
        from pg_proc p where pronamespace = to_regnamespace(%(schema)s)
    """
    return [Thing(*row) for row in _rows(alias, statement, {"schema": SCHEMAS[alias]})]


def _actual(alias: str, names: Mapping[str, str]) -> Iterable[Grant]:
    """What the roles have been given in this database, and of PUBLIC's rights those that it shall not have."""
    statement = """
        with given (kind, target, acl, suffix) as (
            select 'database', quote_ident(datname), coalesce(datacl, acldefault('d', datdba)), ''
            from pg_database where datname = current_database()
            union all
            select 'schema', quote_ident(nspname), coalesce(nspacl, acldefault('n', nspowner)), ''
            from pg_namespace where nspname in (%(schema)s, 'public')
            union all
            select case relkind when 'S' then 'sequence' else 'table' end, c.oid::regclass::text, relacl, ''
            from pg_class c where relnamespace = to_regnamespace(%(schema)s)
            union all
            select 'table', attrelid::regclass::text, attacl, ' (' || quote_ident(attname) || ')'
            from pg_attribute a join pg_class c on c.oid = attrelid
            where relnamespace = to_regnamespace(%(schema)s) and attacl is not null and not attisdropped
            union all
            select 'function', p.oid::regprocedure::text, proacl, ''
            from pg_proc p where pronamespace = to_regnamespace(%(schema)s)
            union all
            select case defaclobjtype when 'S' then 'default sequences' else 'default tables' end,
                quote_ident(nspname), defaclacl, ''
            from pg_default_acl join pg_namespace n on n.oid = defaclnamespace
            where nspname = %(schema)s and defaclrole = current_user::regrole and defaclobjtype in ('r', 'S')
        )
        select coalesce(rolname, ''), lower(a.privilege_type) || suffix, kind, target
        from given, aclexplode(acl) a left join pg_roles r on r.oid = a.grantee
        where rolname = any(%(roles)s)
            or a.grantee = 0 and (kind = 'database' or kind = 'schema' and a.privilege_type = 'CREATE')
    """
    for role, *rest in _rows(alias, statement, {"schema": SCHEMAS[alias], "roles": list(names)}):
        yield Grant(names[role] if role else PUBLIC, *rest)


def _quoted(alias: str, name: str) -> str:
    return connections[alias].ops.quote_name(name)


def _rows(alias: str, statement: str, values: Any = None) -> list[Any]:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []

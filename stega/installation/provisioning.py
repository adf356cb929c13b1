"""Give the database roles of the processes exactly what `privileges` says, in one transaction per database."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django.db.utils import ProgrammingError
from psycopg import errors, sql

from stega.database import patience, vanishing
from stega.installation.preparation import require_prepared
from stega.installation.privileges import KINDS, PUBLIC, SERVING, WATCHING, Grant, Thing, changes, wanted

SCHEMAS = {"default": "public", "jobs": "public", "events": "pgque"}
WATCHERS = "pg_read_all_stats"
MAKE_LARGE_OBJECTS = ("lo_creat", "lo_create", "lo_from_bytea")

Say = Callable[[str], object]


class Wish(NamedTuple):
    """A statement that the owner may be allowed to run, and what is lacking as long as nobody has."""

    statement: str
    lack: str


def provision(prefix: str, passwords: Mapping[str, str], *, reset_passwords: bool, dry_run: bool, say: Say) -> None:
    """Make missing roles and give every role what its kind of process needs in each database, and nothing else.

    Works as the owner of the three databases, who needs CREATEROLE only for roles that are missing. Idempotent; any
    number may run at once. A password reaches the server as a SCRAM verifier. Raises ImproperlyConfigured when a
    database is not prepared, or when a role is left with more than it should have: attributes, memberships and
    possessions are not the owner's to take back.
    """
    for alias in settings.DATABASES:
        require_prepared(alias)
        roles = {kind: f"{prefix}_{kind}" for kind in KINDS if alias in KINDS[kind]}
        with transaction.atomic(using=alias):
            _rows(alias, "select pg_advisory_xact_lock(hashtext('stega roles'))")
            done = _make_roles(alias, roles, passwords, reset_passwords)
            done += _grant(alias, roles)
            wishes = [
                *_let_watch(alias, [roles[kind] for kind in WATCHING if kind in roles]),
                *_limit(alias, roles),
            ]
            fulfilled, unfulfilled = _fulfil(alias, wishes)
            closed, open_to_all = _close_large_objects(alias)
            done += [*fulfilled, *closed]
            _refuse_excess(alias, roles)
            transaction.set_rollback(dry_run, using=alias)
        for line in [*(done or ["nothing to change"]), *unfulfilled, *open_to_all]:
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
    try:
        connection.execute(statement)
    except errors.InsufficientPrivilege:
        raise ImproperlyConfigured(
            f"on {alias} this connection may not set the password of {role}: do it as an administrator (\\password "
            f"{role} in psql), and run the command again without --reset-passwords."
        ) from None


def _grant(alias: str, roles: Mapping[str, str]) -> list[str]:
    names = {role: _quoted(alias, role) for role in roles.values()}
    shall = wanted(alias, {kind: names[role] for kind, role in roles.items()}, _things(alias))
    done: list[str] = []
    for _ in range(2):  # a privilege on a table takes those on its columns along when it is revoked
        statements = changes(set(_actual(alias, names)), shall)
        for statement in statements:
            _rows(alias, statement)
        done += statements
    stays = changes(set(_actual(alias, names)), shall)
    if stays:
        raise ImproperlyConfigured(f"on {alias} an administrator must do what the owner cannot: {'; '.join(stays)}")
    return done


def _let_watch(alias: str, watchers: Iterable[str]) -> Iterator[Wish]:
    """Only one who may pass pg_read_all_stats on can do it."""
    for role in watchers:
        if _rows(alias, "select pg_has_role(%s, %s, 'member')", [role, WATCHERS]) == [(False,)]:
            lack = f"{role} does not see old transactions of others"
            yield Wish(f"grant {WATCHERS} to {_quoted(alias, role)}", lack)


def _limit(alias: str, roles: Mapping[str, str]) -> Iterator[Wish]:
    """Let the server end what nobody waits for any more, and look for hosts that have vanished.

    Processes say so for their own connections too, unless they go through a pooler.
    """
    patience_of = dict.fromkeys(SERVING, patience.server_limit()) | {"tasks": patience.server_limit_of_tasks()}
    for kind, role in roles.items():
        if kind in patience_of:
            limit = f"statement_timeout={patience_of[kind] * 1000:.0f}"
            yield from _set(alias, role, limit, "statements that nobody waits for go on")
        for name, value in vanishing.of_server(vanishing.OF_CLIENT).items():
            yield from _set(alias, role, f"{name}={value}", "sessions of a host that has vanished stay")


def _set(alias: str, role: str, setting: str, lack: str) -> Iterator[Wish]:
    known = """
        select exists (
            select from pg_db_role_setting where setrole = to_regrole(%s) and setdatabase = 0 and %s = any(setconfig)
        )
    """
    name = _quoted(alias, role)
    if _rows(alias, known, [name, setting]) == [(False,)]:
        yield Wish(f"alter role {name} set {setting}", lack)


def _fulfil(alias: str, wishes: Iterable[Wish]) -> tuple[list[str], list[str]]:
    """What was done, and what only an administrator can do."""
    done, left = [], []
    for wish in wishes:
        if _may(alias, wish.statement):
            done.append(wish.statement)
        else:
            left.append(f"{wish.lack} until an administrator does: {wish.statement}")
    return done, left


def _close_large_objects(alias: str) -> tuple[list[str], list[str]]:
    """What was done, and what only an administrator can do: PUBLIC may fill every database with large objects.

    The owner keeps the right: without any, restoring a dump of the database would fail where it revokes this again.
    """
    open_to_all = """
        select string_agg(p.oid::regprocedure::text, ', ' order by p.oid), quote_ident(current_user)
        from pg_proc p, aclexplode(coalesce(proacl, acldefault('f', proowner))) a
        where pronamespace = 'pg_catalog'::regnamespace and proname = any(%s) and a.grantee = 0
    """
    ((functions, owner),) = _rows(alias, open_to_all, [list(MAKE_LARGE_OBJECTS)])
    if not functions:
        return [], []
    statement = f"revoke execute on function {functions} from public"
    _may(alias, statement)  # of what is not the owner's to revoke, PostgreSQL only warns
    if _rows(alias, open_to_all, [list(MAKE_LARGE_OBJECTS)]) == [(None, owner)]:
        return [statement], []
    keep = f"grant execute on function {functions} to {owner}"
    return [], [f"every role can make large objects until an administrator does: {statement}; {keep}"]


def _refuse_excess(alias: str, roles: Mapping[str, str]) -> None:
    """Whatever came from elsewhere and is not the owner's to take back; all of it in one error."""
    excess = [*_attributes(alias, roles), *_memberships(alias, roles), *_possessions(alias, roles)]
    if excess:
        raise ImproperlyConfigured(
            "\n".join(f"on {alias}, {role} {what}." for role, what in excess)
            + "\nTake that away as an administrator, and run the command again."
        )


def _attributes(alias: str, roles: Mapping[str, str]) -> list[tuple[str, str]]:
    """What a role may do by itself, or as anybody may."""
    statement = """
        select rolname, format(what, rolname) from pg_roles r, lateral (values
            (rolsuper, 'is a superuser: alter role %%I nosuperuser'),
            (rolcreaterole, 'may make roles: alter role %%I nocreaterole'),
            (rolcreatedb, 'may make databases: alter role %%I nocreatedb'),
            (rolbypassrls, 'bypasses row security: alter role %%I nobypassrls'),
            (rolreplication, 'may replicate, and so read everything: alter role %%I noreplication'),
            (has_database_privilege(r.oid, current_database(), 'create, temporary'),
                'may create schemas or temporary tables'),
            (exists (select from pg_namespace n where has_schema_privilege(r.oid, n.oid, 'create')),
                'may create in a schema')
        ) as each (is_so, what) where rolname = any(%s) and is_so order by 1
    """
    return _rows(alias, statement, [[*roles.values()]])


def _memberships(alias: str, roles: Mapping[str, str]) -> list[tuple[str, str]]:
    """Every membership, inherited or not, except the one that watchers have, and what that one leads to."""
    statement = """
        with recursive found (role, member, through) as (
            select member, member, roleid from pg_auth_members
            where member in (select oid from pg_roles where rolname = any(%(roles)s))
            union
            select role, m.member, m.roleid from found join pg_auth_members m on m.member = through
            where through = to_regrole(%(allowed)s)
        )
        select distinct pg_get_userbyid(role), quote_ident(pg_get_userbyid(through)),
            quote_ident(pg_get_userbyid(member))
        from found
        where through is distinct from to_regrole(%(allowed)s)
            or pg_get_userbyid(role) <> all(%(watchers)s)
        order by 1, 2
    """
    watchers = [roles[kind] for kind in WATCHING if kind in roles]
    values = {"roles": [*roles.values()], "watchers": watchers, "allowed": WATCHERS}
    return [
        (role, f"is a member of {through}: revoke {through} from {member}")
        for role, through, member in _rows(alias, statement, values)
    ]


def _possessions(alias: str, roles: Mapping[str, str]) -> list[tuple[str, str]]:
    """What a role owns, and what it was given on things that the command does not look after."""
    statement = """
        select rolname, case deptype when 'o' then 'owns ' else 'was given rights on ' end
            || pg_describe_object(classid, objid, objsubid)
        from pg_shdepend join pg_roles r on refclassid = 'pg_authid'::regclass and r.oid = refobjid
            left join pg_class c on classid = 'pg_class'::regclass and c.oid = objid
            left join pg_proc p on classid = 'pg_proc'::regclass and p.oid = objid
            left join pg_namespace n on classid = 'pg_namespace'::regclass and n.oid = objid
        where rolname = any(%(roles)s) and dbid in (0, (select oid from pg_database where datname = current_database()))
            and (deptype = 'o' or deptype = 'a'
                and classid not in ('pg_database'::regclass, 'pg_default_acl'::regclass)
                and relnamespace is distinct from to_regnamespace(%(schema)s)
                and pronamespace is distinct from to_regnamespace(%(schema)s)
                and coalesce(nspname not in (%(schema)s, 'public'), true))
        order by 1, 2
    """
    return _rows(alias, statement, {"roles": [*roles.values()], "schema": SCHEMAS[alias]})


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
        select distinct coalesce(rolname, ''), option || lower(a.privilege_type) || suffix, kind, target
        from given, aclexplode(acl) a left join pg_roles r on r.oid = a.grantee,
            unnest(case when a.is_grantable then array['', 'grant option for '] else array[''] end) option
        where rolname = any(%(roles)s)
            or a.grantee = 0 and (kind = 'database' or kind = 'schema' and a.privilege_type = 'CREATE')
    """
    for role, *rest in _rows(alias, statement, {"schema": SCHEMAS[alias], "roles": list(names)}):
        yield Grant(names[role] if role else PUBLIC, *rest)


def _quoted(alias: str, name: str) -> str:
    return connections[alias].ops.quote_name(name)


def _may(alias: str, statement: str) -> bool:
    """Run the statement; whether this connection has the right to."""
    try:
        with transaction.atomic(using=alias):
            _rows(alias, statement)
    except ProgrammingError:
        return False
    return True


def _rows(alias: str, statement: str, values: Any = None) -> list[Any]:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []

"""How a database is emptied after a test that committed: Django's flush truncates every table, and takes 0.1 s."""

from functools import cache
from typing import Any

from django.db import connections, transaction
from django.test import TransactionTestCase
from psycopg import sql

KEPT = {"django_content_type", "auth_permission"}
"""What `migrate` fills in, and nothing else writes; flush would make it anew."""

EMPTY = sql.SQL("""
    set local session_replication_role = replica;
    lock table {tables} in share row exclusive mode;
    do $$
    declare
        v_table regclass;
        v_is_used boolean;
    begin
        foreach v_table in array {names}::regclass[] loop
            execute format('select exists (select from %s)', v_table) into v_is_used;
            if pg_relation_size(v_table) > 1000000 then
                execute format('truncate %s cascade', v_table);
            elsif v_is_used then
                execute format('delete from %s', v_table);
            end if;
        end loop;
    end;
    $$
""")
"""Complete as a truncation, and as patient with a writer that is about to end; no trigger or key stands in the way."""


def use() -> None:
    """Empty the databases of every test with `transaction=True` from now on."""
    TransactionTestCase._fixture_teardown = _empty_all  # type: ignore[attr-defined]


def _empty_all(test: Any) -> None:
    for alias in test._databases_names(include_mirrors=False):
        empty(alias)


def empty(alias: str) -> None:
    tables = _tables(alias)
    if not tables:
        return
    statement = EMPTY.format(
        tables=sql.SQL(", ").join(map(sql.Identifier, tables)), names=sql.Literal([f'"{name}"' for name in tables])
    )
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute(statement)


@cache
def _tables(alias: str) -> list[str]:
    """The tables of models that live there."""
    names = connections[alias].introspection.django_table_names(only_existing=True, include_views=False)
    return sorted(set(names) - KEPT)

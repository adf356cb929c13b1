"""Rules that hold for every object of the schema."""

import re

import pytest

from tests.pgque.conftest import VENDOR

INTERNAL = "p.pronamespace = 'pgque'::regnamespace"


def offenders(sql, query):
    return [row[0] for row in sql.rows(query)]


@pytest.mark.parametrize(
    ("rule", "query"),
    [
        (
            "security definers pin their search path, pg_temp last",
            f"select p.oid::regprocedure::text from pg_proc p where {INTERNAL} and prosecdef"
            " and not coalesce(proconfig @> array['search_path=pgque, pg_catalog, pg_temp'], false)",
        ),
        (
            "PUBLIC executes nothing",
            "select p.oid::regprocedure::text"
            " from pg_proc p, aclexplode(coalesce(proacl, acldefault('f', proowner))) a"
            f" where {INTERNAL} and a.grantee = 0",
        ),
        (
            "internal functions are for the owner alone",
            f"select p.oid::regprocedure::text from pg_proc p, aclexplode(proacl) a"
            rf" where {INTERNAL} and proname like '\_%' and a.grantee <> proowner",
        ),
        (
            "PUBLIC reads no table and no sequence",
            "select c.oid::regclass::text from pg_class c, aclexplode(relacl) a"
            " where relnamespace = 'pgque'::regnamespace and a.grantee = 0",
        ),
        (
            "every function has a comment",
            f"select p.oid::regprocedure::text from pg_proc p where {INTERNAL}"
            " and obj_description(p.oid, 'pg_proc') is null",
        ),
        (
            "every table and type has a comment",
            "select c.oid::regclass::text from pg_class c where relnamespace = 'pgque'::regnamespace"
            " and relkind in ('r', 'c') and coalesce(obj_description(c.oid, 'pg_class'),"
            " obj_description(c.reltype, 'pg_type')) is null",
        ),
        (
            "every column of a fixed table has a comment",
            "select attrelid::regclass || '.' || attname from pg_attribute a join pg_class c on c.oid = a.attrelid"
            " where relnamespace = 'pgque'::regnamespace and relkind in ('r', 'c') and attnum > 0 and not attisdropped"
            r" and relname not like 'event\__%' escape '\' and col_description(c.oid, attnum) is null",
        ),
        (
            "functions of groups say that they are experimental",
            f"select p.oid::regprocedure::text from pg_proc p where {INTERNAL}"
            r" and proname !~ '^_' and (proname like '%subconsumer' or proname = 'receive_coop')"
            " and obj_description(p.oid, 'pg_proc') not like 'Experimental in PgQue 0.2%'",
        ),
    ],
    ids=lambda value: value if len(value) < 60 else "",
)
def test_every_object_keeps_the_rule(sql, queue, rule, query):
    assert offenders(sql, query) == [], rule


def test_event_tables_are_kept_out_of_autovacuums_hands(sql, queue):
    prefix = sql.value("select queue_data_pfx from pgque.queue where queue_name = %s", [queue])

    options = sql.value("select reloptions from pg_class where oid = %s::regclass", [f"{prefix}_0"])

    assert set(options) == {"fillfactor=100", "autovacuum_enabled=off"}


def test_functions_stay_short_and_files_readable():
    for source in (VENDOR / "src").glob("*.sql"):
        text = source.read_text()
        assert text.count("\n") <= 250, source.name
        for body in re.findall(r"(?<= as \$\$\n).*?(?=\$\$;)", text, re.DOTALL):
            assert body.count("\n") <= 80, body[:200]
        assert not re.search(r"^(begin|commit);|^\\", text, re.MULTILINE), source.name


def test_grants_are_given_in_one_file_only():
    files = {
        source.name for source in (VENDOR / "src").glob("*.sql") if re.search(r"\bgrant .* to\b", source.read_text())
    }

    assert files == {"90_roles.sql"}


def test_the_tests_that_the_readme_names_exist():
    named = set(re.findall(r"`(test_\w+)`", (VENDOR / "README.md").read_text()))
    written = "".join(source.read_text() for source in VENDOR.parents[1].glob("tests/pgque/**/*.py"))

    assert named
    assert {name for name in named if f"def {name}(" not in written} == set()

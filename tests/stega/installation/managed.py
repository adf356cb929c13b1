"""Databases on servers whose administrator is no superuser, as a provider manages them."""

import os
import subprocess
import sys
import uuid

import psycopg

from tests.support import servers
from tests.support.processes import ROOT, VARIABLES


class Installation:
    """Three databases that belong to an administrator who may make roles, prepared the way the README says."""

    def __init__(self):
        self.name = f"managed_{uuid.uuid4().hex[:8]}"
        for server in servers.by_alias.values():
            with psycopg.connect(server.url(), autocommit=True) as superuser:
                superuser.execute(f"create role {self.name} login createrole")
                superuser.execute(f"create database {self.name} owner {self.name}")
                if superuser.info.server_version < 150000:
                    with psycopg.connect(server.url(self.name)) as inside:
                        inside.execute(f"alter schema public owner to {self.name}")
                if server is servers.app:
                    superuser.execute(f"grant pg_read_all_stats to {self.name} with admin option")
        for command in (["migrate"], ["migrate", "--database=jobs"], ["pgque_bootstrap"]):
            self.manage(*command)

    def url(self, alias, role):
        return servers.by_alias[alias].url(self.name).replace("//postgres@", f"//{role}@")

    def connect(self, alias, role):
        return psycopg.connect(self.url(alias, role), autocommit=True)

    def role(self, kind):
        return f"{self.name}_{kind}"

    def manage(self, *arguments, **changes):
        done = self._run(*arguments, **changes)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _run(self, *arguments, **changes):
        urls = {VARIABLES[alias]: self.url(alias, self.name) for alias in VARIABLES}
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env={**os.environ, **urls, **changes}, capture_output=True, text=True, timeout=60
        )

    def provision(self, *options, **changes):
        return self.manage("provision_roles", f"--prefix={self.name}", *options, **changes)

    def refused(self, *options):
        done = self._run("provision_roles", f"--prefix={self.name}", *options)
        assert done.returncode == 1
        return done.stderr

    def privileges(self):
        """All that the catalogues say about rights, in every database."""
        statement = """
            select 'relation', oid::regclass::text, relacl::text from pg_class where relacl is not null
            union all select 'function', oid::regprocedure::text, proacl::text from pg_proc where proacl is not null
            union all select 'schema', nspname, nspacl::text from pg_namespace
            union all select 'database', datname, datacl::text from pg_database
            union all select 'default', defaclrole::text, defaclacl::text from pg_default_acl
            union all select 'member', member::regrole::text, roleid::regrole::text from pg_auth_members
            union all select 'role', rolname, coalesce(rolpassword, '') from pg_authid
        """
        found = {}
        for alias, server in servers.by_alias.items():
            with psycopg.connect(server.url(self.name)) as superuser:
                found[alias] = sorted(map(str, superuser.execute(statement).fetchall()))
        return found

    def remove(self):
        for server in servers.by_alias.values():
            with psycopg.connect(server.url(), autocommit=True) as superuser:
                superuser.execute(f"drop database {self.name} with (force)")
                roles = superuser.execute("select rolname from pg_roles where rolname ~ %s", [f"^{self.name}"])
                for (role,) in roles.fetchall():
                    superuser.execute(f"drop owned by {role} cascade")
                    superuser.execute(f"drop role {role}")

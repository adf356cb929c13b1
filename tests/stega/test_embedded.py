import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import dj_database_url
import psycopg
import pytest

from stega import embedded
from stega.embedded import EmbeddedError, Server, programs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def server(home):
    server = Server(home, durable=False)
    yield server
    server.delete()
    for set_aside in server.folder.parent.glob(f"{server.folder.name}-*"):
        shutil.rmtree(set_aside)


def execute(server, statement, database="postgres"):
    with psycopg.connect(server.url(database), autocommit=True) as connection:
        connection.execute(statement)


def answer(server, statement, database="postgres"):
    with psycopg.connect(server.url(database)) as connection:
        row = connection.execute(statement).fetchone()
    assert row is not None
    return row[0]


def python(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", f"from pathlib import Path; import sys, os; {code}", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def modes_of_parents(path):
    return {parent: parent.stat().st_mode for parent in path.parents}


def test_start_makes_a_server_that_answers_and_stop_leaves_no_process(server):
    server.start()
    version = answer(server, "show server_version")
    server.stop()

    assert version.startswith("18.")
    assert not server.is_running()
    assert server.pid() is None


def test_second_start_reuses_the_running_server(server, home):
    server.start()
    pid = server.pid()

    Server(home, durable=False).start()

    assert server.pid() == pid


def test_data_stays_over_a_restart(server):
    server.start()
    server.create_database("stega_app")
    execute(server, "create table kept (id int)", "stega_app")

    server.restart()

    assert answer(server, "select count(*) from kept", "stega_app") == 0


def test_creating_a_database_twice_keeps_the_first(server):
    server.start()
    server.create_database("stega_app")
    execute(server, "create table kept (id int)", "stega_app")

    server.create_database("stega_app")

    assert answer(server, "select count(*) from kept", "stega_app") == 0


def test_a_killed_server_recovers_what_was_committed(server):
    server.start()
    execute(server, "create table kept (id int)")

    server.kill()
    server.start()

    assert answer(server, "select count(*) from kept") == 0


def test_a_backend_that_outlives_its_killed_server_does_not_stop_the_next_start(server):
    server.start()
    is_busy = threading.Event()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: is_busy.set())
        loop = threading.Thread(target=loop_until_cut, args=[connection])
        loop.start()
        assert is_busy.wait(timeout=10)
        os.kill(server.pid(), signal.SIGKILL)

        server.start()
        loop.join(timeout=10)

    assert answer(server, "select 1") == 1


def loop_until_cut(connection):
    with pytest.raises(psycopg.OperationalError):
        connection.execute("do $$ begin raise notice 'busy'; loop end loop; end $$")


@pytest.mark.parametrize(("folder", "name"), [("data", "postmaster.pid"), ("socket_folder", ".s.PGSQL.5432.lock")])
def test_a_lock_file_that_names_another_program_is_stale(server, folder, name):
    server.start()
    server.stop()
    owner = server.data.stat()
    path = getattr(server, folder) / name
    with program_of(owner.st_uid) as program:
        path.write_text(f"{program.pid}\n{server.data}\n")
        os.chown(path, owner.st_uid, owner.st_gid)

        server.start()

    assert answer(server, "select 1") == 1


@contextmanager
def program_of(uid):
    """A live process of the server's own user: only such a process makes PostgreSQL believe a lock file."""
    with subprocess.Popen(["sleep", "60"], **({"user": uid} if os.geteuid() == 0 else {})) as program:
        try:
            yield program
        finally:
            program.kill()


def test_a_server_whose_starter_was_killed_is_used_again(server, home):
    done = python(
        "from stega.embedded import Server; s = Server(Path(sys.argv[1]), durable=False); s.start();"
        "print(s.pid(), flush=True); os.kill(os.getpid(), 9)",
        home,
    )

    server.start()

    assert server.pid() == int(done.stdout)


def test_the_terminals_interrupt_does_not_reach_the_server(server):
    server.start()

    assert os.getsid(server.pid()) != os.getsid(0)


def test_a_path_with_blanks_accents_and_percent_signs_works(tmp_path):
    server = Server(tmp_path / "com espaço 'é' 100%", durable=False)
    try:
        server.start()

        assert answer(server, "select 1") == 1
    finally:
        server.delete()


def test_servers_of_two_folders_run_at_once(server, tmp_path):
    other = Server(tmp_path / "other", durable=False)
    try:
        server.start()
        other.start()

        assert answer(server, "show data_directory") != answer(other, "show data_directory")
    finally:
        other.delete()


def test_no_folder_above_changes_its_mode(server, tmp_path):
    tmp_path.chmod(0o700)
    before = modes_of_parents(server.home)

    server.start()

    assert modes_of_parents(server.home) == before


def test_only_the_servers_user_may_enter_the_socket_folder(server):
    server.start()

    status = server.socket_folder.stat()

    assert status.st_mode & 0o777 == 0o700
    assert status.st_uid == server.data.stat().st_uid


def test_an_open_socket_folder_is_refused(server):
    server.start()
    server.stop()
    server.socket_folder.chmod(0o755)

    with pytest.raises(EmbeddedError, match="is not a private folder"):
        server.start()


def test_a_new_folder_at_the_path_of_a_deleted_one_starts_empty(server, home):
    server.start()
    execute(server, "create table forgotten (id int)")
    server.stop()
    shutil.rmtree(home)

    server.start()

    assert answer(server, "select count(*) from pg_class where relname = 'forgotten'") == 0


@pytest.mark.parametrize(("durable", "fsync"), [(True, "on"), (False, "off")])
def test_only_a_throw_away_server_risks_its_data(server, home, durable, fsync):
    Server(home, durable=durable).start()

    assert answer(server, "show fsync") == fsync


def test_a_full_disk_gives_one_line_with_the_reason_and_leaves_nothing_half_made(server, home):
    done = python(
        "import resource; from stega.embedded import EmbeddedError, Server\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try: Server(Path(sys.argv[1])).start()\nexcept EmbeddedError as error: print(error)",
        home,
    )

    assert done.stdout.startswith("Making a PostgreSQL data folder failed: FATAL:")
    assert done.stdout.count("\n") == 1
    assert not list(server.folder.glob("data*"))


def test_a_server_that_cannot_start_gives_the_reason_of_its_log(server):
    server.start()
    server.stop()
    (server.data / "postgresql.auto.conf").write_text("work_mem = 'a lot'\n")

    with pytest.raises(EmbeddedError, match=r"PostgreSQL did not start: .*postgresql.auto.conf"):
        server.start()


def test_a_folder_that_cannot_be_made_gives_one_line(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(EmbeddedError, match=r"cannot be used: .*file"):
        Server(tmp_path / "file" / "home").start()


def test_data_of_another_major_version_is_refused(server):
    server.start()
    server.stop()
    (server.data / "PG_VERSION").write_text("17\n")

    with pytest.raises(EmbeddedError, match="was made by PostgreSQL 17, this is 18"):
        server.start()


def test_a_folder_without_binaries_gives_one_line(home, tmp_path):
    with pytest.raises(EmbeddedError, match=r"cannot be used: .*/none/postgres"):
        Server(home, binaries=tmp_path / "none").start()


def test_a_missing_package_says_what_to_do(server, monkeypatch):
    monkeypatch.setattr(programs, "PACKAGE", "no-such-package")

    with pytest.raises(EmbeddedError, match="make run"):
        server.start()


def test_each_alias_has_its_own_database_at_the_projects_server(tmp_path):
    parsed = {alias: dj_database_url.parse(url) for alias, url in embedded.urls(tmp_path).items()}

    assert {alias: database["NAME"] for alias, database in parsed.items()} == embedded.DATABASES
    assert {database["HOST"] for database in parsed.values()} == {str(embedded.project_server(tmp_path).socket_folder)}
    assert not list(tmp_path.iterdir())


def test_urls_carry_any_path_to_django_and_to_libpq(server):
    server.socket_folder = Path("/tmp/Com espaço/100%/a:b@c?d#e")

    assert dj_database_url.parse(server.url())["HOST"] == str(server.socket_folder)
    assert psycopg.conninfo.conninfo_to_dict(server.url())["host"] == str(server.socket_folder)

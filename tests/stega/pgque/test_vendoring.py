"""stega/pgque/vendoring.py: a release takes the old one's place whole or not at all, and what changes is seen."""

import fcntl
import json
import os
import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from stega.pgque import vendoring
from stega.pgque.upstream import Release
from stega.pgque.vendoring import State, VendoringError

NOW = datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=timezone(timedelta(hours=-3)))
FILES = {"pgque.sql": b"select 1;\n", "LICENSE": b"licence", "NOTICE": b"notice"}


def put(upstream, tag="v1", **files):
    """Vendor a release as the command does."""
    given = {name.replace("_sql", ".sql"): content for name, content in files.items()}
    release = Release(tag, "c" * 40, FILES | given)
    vendoring.write(upstream, release, vendoring.manifest(release, "https://example.com/a.git", NOW))


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_manifest_says_where_the_files_came_from(upstream):
    put(upstream)

    document = json.loads((upstream / "SOURCE.json").read_text())
    assert document == {
        "repo": "https://example.com/a.git",
        "tag": "v1",
        "commit": "c" * 40,
        "downloaded_at": "2030-01-02T06:04:05Z",
        "files": {name: vendoring.checksum(FILES[name]) for name in FILES},
    }


def test_a_checksum_names_its_algorithm():
    assert vendoring.checksum(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_files_that_are_as_they_came_are_ok(upstream):
    put(upstream)

    found = vendoring.inspect(upstream)

    assert found.is_ok
    assert found.states == dict.fromkeys(FILES, State.OK)


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_seen(upstream, name):
    put(upstream)
    (upstream / name).write_bytes(b"other")

    found = vendoring.inspect(upstream)

    assert not found.is_ok
    assert [name for name, state in found.states.items() if state is State.DIFFERS] == [name]


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_seen(upstream, name):
    put(upstream)
    (upstream / name).unlink()

    found = vendoring.inspect(upstream)

    assert not found.is_ok
    assert found.states[name] is State.MISSING


def test_a_notice_that_did_not_come_is_seen(upstream):
    release = Release("v1", "c" * 40, {name: FILES[name] for name in ("pgque.sql", "LICENSE")})
    vendoring.write(upstream, release, vendoring.manifest(release, "u", NOW))
    assert vendoring.inspect(upstream).is_ok
    (upstream / "NOTICE").write_text("by hand")

    assert vendoring.inspect(upstream).states["NOTICE"] is State.UNKNOWN


def test_nothing_vendored_is_a_problem_with_a_remedy(upstream):
    found = vendoring.inspect(upstream)

    assert not found.is_ok
    assert "Fetch it: python manage.py pgque_vendor update TAG" in found.problem


@pytest.mark.parametrize(
    "change",
    [
        lambda document: "",
        lambda document: "[" * 100_000,
        lambda document: "\udcff",
        lambda document: "null",
        lambda document: json.dumps(document | {"files": {}}),
        lambda document: json.dumps(
            document | {"files": document["files"] | {"../../settings.py": "sha256:" + "0" * 64}}
        ),
        lambda document: json.dumps(document | {"files": document["files"] | {"pgque.sql": "md5:0"}}),
        lambda document: json.dumps(document | {"tag": 7}),
        lambda document: json.dumps({"tag": "v1"}),
    ],
)
def test_a_damaged_manifest_is_a_problem(upstream, change):
    put(upstream)
    path = upstream / "SOURCE.json"
    path.write_text(change(json.loads(path.read_text())), errors="surrogateescape")

    found = vendoring.inspect(upstream)

    assert found.source is None
    assert found.problem.startswith("SOURCE.json is damaged. Fetch the files again")


def test_a_release_replaces_the_whole_folder(upstream):
    put(upstream)
    (upstream / "stray").write_text("")

    put(upstream, "v2", pgque_sql=b"select 2;\n")

    assert vendoring.inspect(upstream).source.tag == "v2"
    assert content(upstream).keys() == {*FILES, "SOURCE.json"}
    assert (upstream / "pgque.sql").read_bytes() == b"select 2;\n"
    assert {path.name for path in upstream.parent.glob("*upstream*")} == {"upstream"}


@pytest.mark.parametrize("renames", [0, 1])
def test_a_failing_rename_leaves_what_was_there(upstream, monkeypatch, renames):
    put(upstream)
    before = content(upstream)
    rename, done = Path.rename, []

    def fail_once(path, target):
        done.append(path)
        if len(done) == renames + 1:
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_once)

    with pytest.raises(VendoringError, match="is as it was: No space left on device"):
        put(upstream, "v2")

    assert content(upstream) == before
    assert {path.name for path in upstream.parent.glob("*upstream*")} == {"upstream"}


def test_a_full_disk_leaves_what_was_there(upstream):
    put(upstream)
    before = content(upstream)

    with (
        files_up_to(100_000),
        pytest.raises(VendoringError, match="cannot be written, and is as it was: File too large"),
    ):
        put(upstream, "v2", pgque_sql=b" " * 200_000)

    assert content(upstream) == before
    assert {path.name for path in upstream.parent.glob("*upstream*")} == {"upstream"}


@contextmanager
def files_up_to(size):
    """What a full disk does, for this process: no file may grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_a_writer_killed_between_its_renames_left_aside_is_put_back(upstream):
    put(upstream)
    upstream.rename(upstream.with_name(".upstream.old"))

    assert vendoring.inspect(upstream).is_ok
    assert vendoring.script(upstream) == "select 1;\n"


def test_leftovers_of_killed_writers_do_not_stop_the_next(upstream):
    put(upstream)
    for name in (".upstream.new", ".upstream.old"):
        (upstream.with_name(name) / "deep").mkdir(parents=True)

    put(upstream, "v2")

    assert vendoring.inspect(upstream).source.tag == "v2"
    assert {path.name for path in upstream.parent.glob("*upstream*")} == {"upstream"}


@pytest.mark.parametrize("make", [lambda path: path.write_text(""), lambda path: path.symlink_to("nowhere")])
def test_a_file_or_link_in_the_folders_place_is_replaced(upstream, make):
    make(upstream)

    put(upstream)
    put(upstream, "v2")

    assert vendoring.inspect(upstream).source.tag == "v2"


def test_writers_and_readers_at_once_always_find_one_whole_release(upstream):
    put(upstream, "v0")

    def write(number):
        put(upstream, f"v{number}", pgque_sql=f"select {number};\n".encode())
        return vendoring.inspect(upstream).is_ok

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write, range(80)))

    assert {path.name for path in upstream.parent.glob("*upstream*")} == {"upstream"}


def test_a_writer_waits_for_a_reader(upstream):
    put(upstream)
    descriptor = os.open(upstream.parent, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(put, upstream, "v2")

        with pytest.raises(TimeoutError):
            writing.result(timeout=0.2)

        os.close(descriptor)
        writing.result(timeout=10)


def test_the_script_is_given_when_it_agrees_with_its_checksum(upstream):
    put(upstream)

    assert vendoring.script(upstream) == "select 1;\n"


def test_a_changed_script_is_refused(upstream):
    put(upstream)
    (upstream / "pgque.sql").write_text("drop schema public cascade;\n")

    with pytest.raises(VendoringError, match=r"not the one of v1\. Fetch it again: .* update v1$"):
        vendoring.script(upstream)


def test_a_script_put_there_by_hand_is_taken_as_it_is(upstream):
    upstream.mkdir()
    (upstream / "pgque.sql").write_text("select 7;\n")

    assert vendoring.script(upstream) == "select 7;\n"


def test_a_script_that_is_no_text_is_refused(upstream):
    put(upstream, pgque_sql=b"\xff")

    with pytest.raises(VendoringError, match="is no UTF-8 text"):
        vendoring.script(upstream)


def test_the_same_script_has_no_difference(upstream):
    put(upstream)

    comparison = vendoring.compare(upstream, Release("v1", "c" * 40, FILES))

    assert (comparison.is_different, comparison.text) == (False, "")


def test_a_difference_shows_what_the_release_would_bring(upstream):
    put(upstream)

    comparison = vendoring.compare(upstream, Release("v2", "d" * 40, FILES | {"pgque.sql": b"select 2;\n"}))

    assert comparison.is_different
    assert comparison.text.splitlines()[:2] == ["--- upstream/pgque.sql", "+++ sql/pgque.sql of v2"]
    assert {"-select 1;", "+select 2;"} <= set(comparison.text.splitlines())


@pytest.mark.parametrize("theirs", [b"select 1;", b"select 1;\r\n", b"select 1;\n\xff", b"select 1;\n\xfe"])
def test_no_difference_is_too_small_to_show(upstream, theirs):
    put(upstream)

    comparison = vendoring.compare(upstream, Release("v2", "d" * 40, FILES | {"pgque.sql": theirs}))

    assert comparison.is_different
    assert comparison.text


@pytest.mark.parametrize(
    ("tag", "commit", "expected"),
    [("v1", "c" * 40, None), ("v2", "d" * 40, None), ("v1", "d" * 40, "The tag v1 was moved")],
)
def test_a_tag_that_means_another_commit_was_moved(upstream, tag, commit, expected):
    put(upstream)

    said = vendoring.moved(vendoring.inspect(upstream).source, Release(tag, commit, FILES))

    assert (said or "").startswith(expected or "")
    assert bool(said) == bool(expected)

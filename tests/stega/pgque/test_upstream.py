"""stega/pgque/upstream.py: what upstream's repository holds, and what is refused before git sees it."""

import contextlib
import os

import psutil
import pytest

from stega.pgque import upstream
from stega.pgque.upstream import Upstream, UpstreamError, is_tag_name, newest_first, without_credentials
from tests.support.upstream import needs_git
from tests.support.waiting import wait_until


@pytest.mark.parametrize("name", ["v0.2.0", "0.3", "v0.3.0-alpha.1", "v1.0+build_7", "client/v0.2.2"])
def test_usual_names_of_tags_are_accepted(name):
    assert is_tag_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "-v1",
            "--upload-pack=x",
            "v 1",
            "v1\n",
            "v1\0",
            "a..b",
            "../v1",
            "v1/",
            "a//b",
            "a/.b",
            "v1.",
            "v1.lock",
        ),
        *("v1^{}", "v1~1", "v1:sql", "v*", "v?", "v[1]", "@{u}", "v1@{1}", "$(id)", "v1;id", "ação", "v" * 101),
    ],
)
def test_names_that_git_could_take_for_something_else_are_refused(name):
    assert not is_tag_name(name)


def test_tags_are_sorted_as_versions():
    tags = ["v0.9.0", "nightly", "v0.10.0", "v0.10.0-rc2", "v0.10.0-rc10", "v0.10.0-alpha.1", "0.11", "v0.10.0.1"]

    assert newest_first(tags) == [
        *("0.11", "v0.10.0.1", "v0.10.0", "v0.10.0-rc10", "v0.10.0-rc2", "v0.10.0-alpha.1", "v0.9.0", "nightly")
    ]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://name:hunter2@example.com/a.git", "https://example.com/a.git"),
        ("https://token@example.com/a.git", "https://example.com/a.git"),
        ("https://example.com/a@b.git", "https://example.com/a@b.git"),
        ("ssh://git@example.com/a.git", "ssh://git@example.com/a.git"),
        ("git@example.com:a.git", "git@example.com:a.git"),
    ],
)
def test_an_address_is_shown_without_credentials(url, shown):
    assert without_credentials(url) == shown


@pytest.mark.parametrize("url", ["", "--upload-pack=touch x", "https://example.com/\nx", "file:///a\0b"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(UpstreamError, match="is no address of a git repository"):
        Upstream(url)


def test_a_machine_without_git_gets_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(UpstreamError, match=r"^git is not installed.*: install git\.$"), Upstream("file:///nowhere"):
        pass


@needs_git
def test_tags_come_newest_first_with_their_commits(repository):
    commits = {name: repository.tag(name) for name in ("v0.10.0", "v0.9.0")}

    with Upstream(repository.url) as source:
        tags = source.tags()

    assert list(tags) == ["v0.10.0", "v0.9.0", "v0.2.0"]
    assert tags | commits == tags


@needs_git
@pytest.mark.parametrize("options", [[], ["--annotate", "--message=release"]], ids=["plain", "annotated"])
def test_a_tag_means_its_commit(repository, options):
    commit = repository.tag("v1", *options)

    with Upstream(repository.url) as source:
        assert source.tags()["v1"] == commit
        assert source.release("v1").commit == commit


@needs_git
def test_a_release_holds_the_files_of_its_commit_and_of_no_other(repository):
    repository.files("select 'second'", LICENSE="other")
    repository.tag("v0.3.0")

    with Upstream(repository.url) as source:
        files = source.release("v0.2.0").files

    assert files == {"pgque.sql": b"select 'first'", "LICENSE": b"licence", "NOTICE": b"notice"}


@needs_git
def test_a_release_may_lack_a_notice(repository):
    (repository.folder / "NOTICE").unlink()
    repository.tag("v1")

    with Upstream(repository.url) as source:
        assert source.release("v1").files.keys() == {"pgque.sql", "LICENSE"}


@needs_git
@pytest.mark.parametrize("name", ["sql/pgque.sql", "LICENSE"])
def test_a_release_without_what_counts_is_refused(repository, name):
    (repository.folder / name).unlink()
    repository.tag("v1")

    with Upstream(repository.url) as source, pytest.raises(UpstreamError, match=f"has no file {name}"):
        source.release("v1")


@needs_git
def test_a_symbolic_link_in_place_of_a_file_is_refused(repository):
    (repository.folder / "LICENSE").unlink()
    (repository.folder / "LICENSE").symlink_to("/etc/hostname")
    repository.tag("v1")

    with Upstream(repository.url) as source, pytest.raises(UpstreamError, match="has no file LICENSE"):
        source.release("v1")


@needs_git
def test_an_unknown_tag_is_answered_with_the_newest(repository):
    with (
        Upstream(repository.url) as source,
        pytest.raises(UpstreamError, match=r"has no tag v9\. Its newest: v0\.2\.0"),
    ):
        source.release("v9")


@needs_git
def test_a_branch_is_no_tag(repository):
    repository.git("branch", "work")

    with Upstream(repository.url) as source, pytest.raises(UpstreamError, match="has no tag work"):
        source.release("work")


@needs_git
def test_a_hostile_name_of_a_tag_never_reaches_git(repository, monkeypatch):
    with Upstream(repository.url) as source:
        monkeypatch.setenv("PATH", "")

        with pytest.raises(UpstreamError, match="is no name of a tag"):
            source.release("--upload-pack=id")


@needs_git
def test_a_repository_that_is_not_there_gives_one_line_with_gits_words(tmp_path):
    with Upstream(f"file://{tmp_path}/nothing") as source, pytest.raises(UpstreamError) as caught:
        source.tags()

    assert "does not appear to be a git repository. Check the network and the address" in str(caught.value)
    assert "\n" not in str(caught.value)


@needs_git
def test_an_unreachable_server_gives_one_line_without_the_password():
    with Upstream("http://name:hunter2@127.0.0.1:1/a.git") as source, pytest.raises(UpstreamError) as caught:
        source.tags()

    assert str(caught.value).startswith("git cannot read http://127.0.0.1:1/a.git: ")
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


@needs_git
def test_an_address_that_would_run_a_program_is_refused(tmp_path, monkeypatch):
    (tmp_path / "config").write_text('[protocol "ext"]\nallow = always\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    with Upstream(f"ext::touch {tmp_path}/ran") as source, pytest.raises(UpstreamError, match="'ext' not allowed"):
        source.tags()

    assert not (tmp_path / "ran").exists()


def test_credentials_that_git_repeats_are_not_shown(monkeypatch, tmp_path):
    fake_git(monkeypatch, tmp_path, 'case $* in *ls-remote*) printf "fatal: no\\033[31m $*" >&2; exit 1;; esac')

    with Upstream("https://name:hunter2@example.com/a.git") as source, pytest.raises(UpstreamError) as caught:
        source.tags()

    assert "no [31m" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_silent_server_is_given_up_with_everything_that_git_started(monkeypatch, tmp_path):
    fake_git(monkeypatch, tmp_path, f"case $* in *ls-remote*) echo $$ > {tmp_path}/pid; sleep 60 & wait;; esac")
    with Upstream("file:///nowhere") as source:
        monkeypatch.setattr(upstream, "GIT_SECONDS", 2.0)

        with pytest.raises(UpstreamError, match="did not answer within"):
            source.tags()

    group = int((tmp_path / "pid").read_text())
    wait_until(lambda: not members(group), 10)


def fake_git(monkeypatch, folder, script):
    (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def members(group):
    """The processes of a group that have not ended."""
    return [
        process
        for process in psutil.process_iter(["status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE and group_of(process) == group
    ]


def group_of(process):
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(process.pid)

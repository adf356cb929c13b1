"""manage.py pgque_vendor: exit codes and what it prints."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from stega.pgque import vendoring
from tests.support.upstream import needs_git


@pytest.fixture
def tool(vendor, repository, settings):
    """Run an action on the repository of the setting; its exit code and what it printed."""
    settings.PGQUE_REPOSITORY = repository.url
    return run_tool


def run_tool(*arguments):
    out = StringIO()
    try:
        call_command("pgque_vendor", *arguments, stdout=out, stderr=out)
    except SystemExit as ended:
        return ended.code, out.getvalue()
    return 0, out.getvalue()


def test_status_without_anything_vendored_is_1_and_says_what_to_do(vendor):
    code, said = run_tool()

    assert code == 1
    assert "nothing is vendored yet. Fetch it: python manage.py pgque_vendor update TAG" in said


def test_status_shows_whether_our_own_engine_is_built(vendor):
    (vendor / "pgque.sql").write_text("-- edited")

    code, said = run_tool("status", "--json")

    assert code == 1
    assert json.loads(said)["engine"] == {"version": (vendor / "VERSION").read_text().strip(), "is_fresh": False}


def test_diff_without_anything_vendored_fails_before_git_runs(vendor, monkeypatch):
    monkeypatch.setenv("PATH", "")

    with pytest.raises(CommandError, match="no tag to compare with: nothing is vendored yet") as caught:
        run_tool("diff")

    assert caught.value.returncode == 2


@pytest.mark.parametrize("arguments", [["list"], ["update", "v1"], ["diff", "v1"]])
def test_every_action_of_the_network_says_that_git_is_missing(vendor, monkeypatch, tmp_path, arguments):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(CommandError, match="git is not installed") as caught:
        run_tool(*arguments)

    assert caught.value.returncode == 2


@needs_git
def test_update_and_status_agree(tool):
    assert tool("update", "v0.2.0")[0] == 0

    code, said = tool("status")

    assert code == 0
    assert "LICENSE: ok" in said


@needs_git
def test_status_after_an_edit_is_1_and_names_the_file_and_the_remedy(tool, upstream):
    tool("update", "v0.2.0")
    (upstream / "pgque.sql").write_text("edited")

    code, said = tool("status")

    assert code == 1
    assert "pgque.sql: differs" in said
    assert "python manage.py pgque_vendor update v0.2.0" in said


@needs_git
def test_status_as_json_is_the_whole_truth(tool, repository):
    tool("update", "v0.2.0")

    code, said = tool("status", "--json")

    document = json.loads(said)
    assert (code, document["is_ok"], document["upstream"]["problem"]) == (0, True, None)
    assert document["upstream"]["source"]["commit"] == repository.git("rev-parse", "v0.2.0")
    assert document["upstream"]["states"] == {"pgque.sql": "ok", "LICENSE": "ok", "NOTICE": "ok"}


@needs_git
def test_update_prints_the_manifest_as_json(tool, upstream):
    code, said = tool("update", "v0.2.0", "--json")

    assert code == 0
    assert json.loads(said) == json.loads((upstream / "SOURCE.json").read_text())


@needs_git
def test_update_to_an_unknown_tag_changes_nothing(tool, upstream):
    tool("update", "v0.2.0")

    with pytest.raises(CommandError, match="has no tag v9"):
        tool("update", "v9")

    assert vendoring.inspect(upstream).source.tag == "v0.2.0"


@needs_git
def test_the_repository_may_be_named_for_one_action(tool, repository, settings, upstream):
    settings.PGQUE_REPOSITORY = "file:///nowhere"

    tool("update", "v0.2.0", "--repository", repository.url)

    assert vendoring.inspect(upstream).source.repo == repository.url


@needs_git
def test_list_marks_the_vendored_tag(tool, repository):
    newer = repository.tag("v0.10.0")
    older = repository.git("rev-parse", "v0.2.0")
    tool("update", "v0.2.0")

    code, said = tool("list")

    assert code == 0
    assert said == f"  v0.10.0  {newer}\n* v0.2.0  {older}\n"


@needs_git
def test_list_as_json_marks_the_vendored_tag(tool, repository):
    repository.tag("v0.10.0")
    tool("update", "v0.2.0")

    _, said = tool("list", "--json")

    document = json.loads(said)
    assert document["repository"] == repository.url
    assert [(row["tag"], row["is_vendored"]) for row in document["tags"]] == [("v0.10.0", False), ("v0.2.0", True)]


@needs_git
@pytest.mark.parametrize("tag", [[], ["v0.2.0"]], ids=["its own tag", "named"])
def test_diff_of_the_same_script_is_0(tool, tag):
    tool("update", "v0.2.0")

    assert tool("diff", *tag) == (0, "upstream/pgque.sql is the one of v0.2.0\n")


@needs_git
def test_diff_with_another_tag_is_1_and_shows_it(tool, repository):
    repository.files("select 'second'")
    repository.tag("v0.3.0")
    tool("update", "v0.2.0")

    code, said = tool("diff", "v0.3.0")

    assert code == 1
    assert "-select 'first'\n+select 'second'\n" in said


@needs_git
def test_diff_with_its_own_tag_shows_an_edit(tool, upstream):
    tool("update", "v0.2.0")
    (upstream / "pgque.sql").write_text("edited")

    code, said = tool("diff", "--json")

    document = json.loads(said)
    assert (code, document["is_different"], document["tag"]) == (1, True, "v0.2.0")
    assert "-edited" in document["text"]


@needs_git
def test_diff_says_that_its_tag_was_moved(tool, repository):
    tool("update", "v0.2.0")
    repository.tag("v0.2.0", "--force")

    code, said = tool("diff")

    assert code == 0
    assert "The tag v0.2.0 was moved" in said

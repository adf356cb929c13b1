"""The documents hang together: links, anchors, languages, names."""

import re
from pathlib import Path

import pytest

from operations.problems.words import Name

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(part.startswith(".") or part in ("upstream", "staticfiles") for part in path.relative_to(ROOT).parts)
)
TRANSLATED = ["architecture.md", "console.md", "events.md", "guide.md", "operations.md"]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def prose(path):
    return FENCE.sub("", path.read_text())


def anchors(path):
    """As GitHub makes them of headings: small letters, no punctuation, blanks become dashes."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(path, link):
    """What is wrong with a link in the document, if anything. What leads out of the project is not looked at."""
    if re.match(r"[a-z]+:", link):
        return ""
    name, _, anchor = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    if not target.exists():
        return f"{link}: no such file"
    if anchor and anchor not in anchors(target):
        return f"{link}: no such heading"
    return ""


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path):
    assert [trouble for link in LINK.findall(prose(path)) if (trouble := broken(path, link))] == []


@pytest.mark.parametrize("link", ["nowhere.md", "guide.md#no-such-heading", "#nor-this"])
def test_a_link_to_nowhere_is_noticed(link):
    assert broken(ROOT / "docs" / "guide.md", link)


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_document_is_the_same_in_both_languages(name):
    english, portuguese = (ROOT / "docs" / name).read_text(), (ROOT / "docs" / "pt-br" / name).read_text()

    for pattern in (r"^(#+) ", r"^```(\w*)", r"^(\|)", r"^### (\w+_\w+)$"):
        assert re.findall(pattern, portuguese, re.MULTILINE) == re.findall(pattern, english, re.MULTILINE)
    for language in ("sh", "sql"):
        blocks = re.compile(rf"^```{language}.*?^```$", re.MULTILINE | re.DOTALL)
        assert blocks.findall(portuguese) == blocks.findall(english)


def test_the_readme_leads_to_every_document():
    linked = set(LINK.findall((ROOT / "README.md").read_text()))

    for name in TRANSLATED:
        assert {f"docs/{name}", f"docs/pt-br/{name}"} <= linked


def test_every_problem_has_a_heading_and_every_such_heading_a_problem():
    headings = set(re.findall(r"^### (\w+_\w+)$", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE))

    assert headings == set(Name)

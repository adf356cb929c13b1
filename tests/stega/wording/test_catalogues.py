"""The translations are complete; and what would keep them from being so is found."""

import re
from pathlib import Path

import polib
import pytest

from stega.wording import catalogues


def test_every_message_is_translated_into_every_language():
    assert catalogues.problems() == [], "run: make messages"


def test_the_outbox_has_one_name_in_portuguese():
    told = [text for entry in polib.pofile(str(catalogues.path_of("pt_BR"))) for text in texts_of(entry)]

    assert [text for text in told if re.search(r"\boutbox\b", text)] == []


@pytest.mark.parametrize(("locale", "other_word"), [("en", "purge"), ("pt_BR", "apag")])
def test_deleting_has_one_name(locale, other_word):
    told = [text for entry in polib.pofile(str(catalogues.path_of(locale))) for text in texts_of(entry)]

    assert [text for text in told if other_word in text.lower()] == []


def texts_of(entry: polib.POEntry) -> list[str]:
    return [entry.msgstr, *entry.msgstr_plural.values()]


@pytest.fixture
def project(settings, tmp_path):
    """A project of one template and one module, with its catalogues made and Portuguese written."""
    settings.BASE_DIR = tmp_path
    settings.LOCALE_PATHS = [tmp_path / "locale"]
    (tmp_path / "tickets" / "templates").mkdir(parents=True)
    (tmp_path / "tickets" / "templates" / "page.html").write_text(
        '{% load i18n %}{% translate "Save" %} {% blocktranslate count n=n %}{{ n }} row{% plural %}{{ n }} rows'
        "{% endblocktranslate %}"
    )
    (tmp_path / "tickets" / "rules.py").write_text(
        'label = gettext_lazy("Not “now”")\nother = pgettext("verb", "Open")\n'
    )
    for locale in catalogues.locales():
        catalogues.update(locale)
    translate({"Save": "Salvar", "Not “now”": "Agora não", "Open": "Abrir"}, ["%(n)s linha", "%(n)s linhas"])
    catalogues.update("pt_BR")
    return tmp_path


def translate(texts: dict[str, str], rows: list[str]) -> None:
    path = catalogues.path_of("pt_BR")
    catalogue = polib.pofile(str(path))
    for entry in catalogue:
        if entry.msgid_plural:
            entry.msgstr_plural = dict(enumerate(rows))
        else:
            entry.msgstr = texts[entry.msgid]
    catalogue.save(str(path))


def entries(locale: str) -> dict[str, polib.POEntry]:
    return {entry.msgid: entry for entry in polib.pofile(str(catalogues.path_of(locale)))}


def test_messages_of_code_and_templates_are_found(project: Path):
    assert set(entries("pt_BR")) == {"Save", "%(n)s row", "Not “now”", "Open"}
    assert entries("pt_BR")["Open"].msgctxt == "verb"


def test_english_is_its_own_translation(project: Path):
    assert entries("en")["Save"].msgstr == "Save"
    assert entries("en")["%(n)s row"].msgstr_plural == {0: "%(n)s row", 1: "%(n)s rows"}


def test_translations_are_kept(project: Path):
    catalogues.update("pt_BR")

    assert entries("pt_BR")["Save"].msgstr == "Salvar"
    assert catalogues.problems() == []


def test_updating_again_changes_no_byte(project: Path):
    before = catalogues.path_of("pt_BR").read_bytes()

    catalogues.update("pt_BR")

    assert catalogues.path_of("pt_BR").read_bytes() == before


def test_a_message_that_is_not_in_the_catalogue_is_found(project: Path):
    (project / "tickets" / "more.py").write_text('_("More")')

    assert "pt_BR: not in the catalogue: 'More'" in catalogues.problems()


def test_a_message_that_is_not_translated_is_found(project: Path):
    (project / "tickets" / "more.py").write_text('_("More")')
    for locale in catalogues.locales():
        catalogues.update(locale)

    assert catalogues.problems() == ["pt_BR: not translated: 'More'"]


def test_a_message_that_is_no_longer_used_is_found(project: Path):
    (project / "tickets" / "rules.py").unlink()

    assert "en: no longer in the code: 'Open'" in catalogues.problems()


def test_a_stale_compiled_catalogue_is_found(project: Path):
    translate({"Save": "Guardar", "Not “now”": "Agora não", "Open": "Abrir"}, ["%(n)s linha", "%(n)s linhas"])

    assert catalogues.problems() == ["pt_BR: django.mo is stale"]


def test_a_fuzzy_translation_is_found(project: Path):
    path = catalogues.path_of("pt_BR")
    catalogue = polib.pofile(str(path))
    catalogue[0].flags.append("fuzzy")
    catalogue.save(str(path))

    assert any("not translated" in problem for problem in catalogues.problems())

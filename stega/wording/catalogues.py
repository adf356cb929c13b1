"""The translations in `locale/`: found in the code, merged, compiled and checked without GNU gettext.

Needs the development requirements (Babel and polib). The application only reads the compiled catalogues.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polib
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from django.conf import settings
from django.utils.translation import templatize, to_locale

APPS = ("stega", "accounts", "tickets", "notifications", "operations")
SOURCE_LANGUAGE = "en"
KEYWORDS = DEFAULT_KEYWORDS | {
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
PLURALS = {"en": "nplurals=2; plural=(n != 1);", "pt_BR": "nplurals=2; plural=(n > 1);"}

Identity = tuple[str | None, str]


@dataclass
class Message:
    context: str | None
    singular: str
    plural: str
    files: set[str] = field(default_factory=set)


def locales() -> list[str]:
    return [to_locale(code) for code, _name in settings.LANGUAGES]


def path_of(locale: str) -> Path:
    return Path(settings.LOCALE_PATHS[0]) / locale / "LC_MESSAGES" / "django.po"


def extracted() -> dict[Identity, Message]:
    """Every message of the code and the templates of our apps."""
    found: dict[Identity, Message] = {}
    for path in _sources():
        name = str(path.relative_to(settings.BASE_DIR))
        for context, singular, plural in _messages_of(path, name):
            message = found.setdefault((context, singular), Message(context, singular, plural))
            message.plural = message.plural or plural
            message.files.add(name)
    return found


def update(locale: str) -> polib.POFile:
    """Write the catalogue of a locale: new messages added, those no longer in the code removed, translations kept.

    English is its own translation. Entries are ordered and carry no dates or line numbers, so that branches merge.
    """
    path = path_of(locale)
    old = {_identity(entry): entry for entry in polib.pofile(str(path))} if path.exists() else {}
    catalogue = polib.POFile(wrapwidth=0)
    catalogue.metadata = {
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "Language": locale,
        "Plural-Forms": PLURALS[locale],
    }
    for identity, message in sorted(extracted().items(), key=lambda item: (item[0][1], item[0][0] or "")):
        catalogue.append(_entry(message, old.get(identity), locale))
    path.parent.mkdir(parents=True, exist_ok=True)
    catalogue.save(str(path), newline="\n")
    path.with_suffix(".mo").write_bytes(catalogue.to_binary())
    return catalogue


def problems() -> list[str]:
    """What keeps the catalogues from being complete; empty when nothing does."""
    messages = extracted()
    return [problem for locale in locales() for problem in _problems(locale, messages)]


def _problems(locale: str, messages: dict[Identity, Message]) -> Iterator[str]:
    path = path_of(locale)
    if not path.exists():
        yield f"{locale}: there is no catalogue"
        return
    catalogue = polib.pofile(str(path))
    entries = {_identity(entry): entry for entry in catalogue}
    yield from (f"{locale}: not in the catalogue: {text!r}" for _context, text in messages.keys() - entries.keys())
    yield from (f"{locale}: no longer in the code: {text!r}" for _context, text in entries.keys() - messages.keys())
    for entry in catalogue:
        if entry.fuzzy or not entry.translated():
            yield f"{locale}: not translated: {entry.msgid!r}"
    compiled = path.with_suffix(".mo")
    if not compiled.exists() or compiled.read_bytes() != catalogue.to_binary():
        yield f"{locale}: {compiled.name} is stale"


def _sources() -> Iterator[Path]:
    for app in APPS:
        paths = sorted((settings.BASE_DIR / app).rglob("*"))
        yield from (path for path in paths if path.suffix == ".py" and "migrations" not in path.parts)
        yield from (path for path in paths if path.suffix in (".html", ".txt") and "templates" in path.parts)


def _messages_of(path: Path, name: str) -> Iterator[tuple[str | None, str, str]]:
    text = path.read_text()
    code = text if path.suffix == ".py" else templatize(text, origin=name)
    for _line, found, _comments, context in extract("python", io.BytesIO(code.encode()), keywords=KEYWORDS):
        singular, plural = found if isinstance(found, tuple) else (found, "")
        if singular:
            yield context, singular, plural or ""


def _entry(message: Message, old: polib.POEntry | None, locale: str) -> polib.POEntry:
    entry = polib.POEntry(
        msgctxt=message.context,
        msgid=message.singular,
        msgid_plural=message.plural,
        occurrences=[(name, "") for name in sorted(message.files)],
        flags=["python-format"] if "%(" in message.singular else [],
    )
    is_source = locale == SOURCE_LANGUAGE
    if message.plural:
        forms = {0: message.singular, 1: message.plural} if is_source else {0: "", 1: ""}
        entry.msgstr_plural = dict(old.msgstr_plural) if old and old.msgstr_plural and not is_source else forms
    else:
        entry.msgstr = message.singular if is_source else (old.msgstr if old else "")
    return entry


def _identity(entry: polib.POEntry) -> Identity:
    return entry.msgctxt, entry.msgid

"""docs/events.md in every language: the catalogue of events, for who reads the queue with a program of their own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import override

from stega.pgque.catalogue import EVENT_TYPES, WEEKLY_STATS, EventType

JSON_NAMES = {int: "integer", float: "number", str: "string", dict: "object", type(None): "null"}
EXAMPLES: Mapping[type, Any] = {int: 7, float: 1.5, str: "…", dict: {}}


def path_of(language: str) -> Path:
    folder = Path(settings.BASE_DIR) / "docs"
    return folder / "events.md" if language == "en" else folder / language / "events.md"


def text_in(language: str) -> str:
    """The whole document in the language."""
    with override(language):
        sections = [_introduction(), *(_section(event_type) for event_type in EVENT_TYPES.values())]
    return "\n\n".join(sections) + "\n"


def _introduction() -> str:
    return "\n\n".join(
        [
            "# " + _("The events"),
            _("Made by `python manage.py events_document` from `stega/pgque/catalogue.py`: change it there."),
            _(
                "Every event is on the queue `%(queue)s` of the events database. Its payload is a JSON object of the "
                "fields below; a reader passes over fields that it does not know. `extra1` holds the event key, the "
                "same however often the event comes: who acts once per key acts once per event."
            )
            % {"queue": settings.PGQUE_QUEUE},
            _(
                "Every consumer sees every event. Stega's own acknowledge the types that are not theirs. Another "
                "program subscribes a consumer of its own, before the events that it wants to see."
            ),
        ]
    )


def _section(event_type: EventType) -> str:
    parts = [
        f"## {event_type.name}",
        _(event_type.meaning),
        _("Published by `%(task)s`.") % {"task": event_type.publisher} + " " + _readers(event_type),
        _table(event_type.payload),
    ]
    if event_type.name == "report.weekly_ready":
        parts += [_("The fields of `stats`:"), _table(WEEKLY_STATS)]
    example = {name: _example(kind) for name, kind in event_type.payload.items()}
    if "stats" in example:
        example["stats"] = {name: _example(kind) for name, kind in WEEKLY_STATS.items()}
    return "\n\n".join([*parts, f"```json\n{json.dumps(example, ensure_ascii=False)}\n```"])


def _readers(event_type: EventType) -> str:
    if not event_type.consumers:
        return _("No consumer of Stega acts on it.")
    return _("Handled by %(consumers)s.") % {"consumers": ", ".join(f"`{name}`" for name in event_type.consumers)}


def _table(fields: Mapping[str, type | tuple[type, ...]]) -> str:
    rows = [f"| `{name}` | {_kinds(kind)} |" for name, kind in fields.items()]
    return "\n".join([_("| field | JSON type |"), "|---|---|", *rows])


def _kinds(kind: type | tuple[type, ...]) -> str:
    return _(" or ").join(JSON_NAMES[each] for each in _each(kind))


def _example(kind: type | tuple[type, ...]) -> Any:
    return EXAMPLES[_each(kind)[0]]


def _each(kind: type | tuple[type, ...]) -> tuple[type, ...]:
    return kind if isinstance(kind, tuple) else (kind,)

import json
import re

import pytest
from django.conf import settings

from stega.pgque import catalogue
from stega.pgque.event_document import path_of, text_in

LANGUAGES = [code for code, _name in settings.LANGUAGES]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_document_is_what_the_catalogue_says(language):
    assert path_of(language).read_text() == text_in(language), "run: python manage.py events_document"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_example_is_a_payload_that_the_catalogue_takes(language):
    sections = re.findall(r"^## (\S+)$.*?```json\n(.*?)\n```", text_in(language), re.MULTILINE | re.DOTALL)

    assert [name for name, _ in sections] == list(catalogue.EVENT_TYPES)
    for name, example in sections:
        catalogue.check(name, json.loads(example))


def test_each_language_has_its_own_words():
    english, portuguese = text_in("en"), text_in("pt-br")

    assert "# The events" in english
    assert "# Os eventos" in portuguese
    assert [line for line in portuguese.splitlines() if line.startswith("## ")] == [
        line for line in english.splitlines() if line.startswith("## ")
    ]

"""stega/wording/text.py: what PostgreSQL, a log and a page can all take."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.errors import UniqueViolation

from stega.wording.text import clean, told, trace


@given(st.text(st.characters(), max_size=300))
def test_clean_text_has_no_nul_no_half_pair_and_the_length_allowed(text):
    cleaned = clean(text, 100)

    cleaned.encode("utf-8")
    assert "\x00" not in cleaned
    assert len(cleaned) <= 100


@pytest.mark.parametrize("text", ["", "plain", "Não 💎", r"talks about \u0000 only"])
def test_harmless_text_is_kept(text):
    assert clean(text, 100) == text


def failed(cause):
    """An error with a cause, as it is when it is caught."""
    try:
        try:
            raise cause
        except Exception as error:
            raise KeyError("their words") from error
    except KeyError as error:
        return error


def test_an_error_is_told_by_its_kind_and_place_without_its_words():
    text = told(failed(ValueError("their words")))

    assert re.fullmatch(r"KeyError at tests/stega/wording/test_text\.py:\d+", text)


def test_an_error_that_was_never_raised_has_no_place():
    assert told(ValueError("their words")) == "ValueError"


def test_an_error_of_a_database_is_told_with_its_state():
    assert told(failed(UniqueViolation("their words"))).startswith("KeyError 23505 at ")


def test_a_traceback_shows_every_cause_and_none_of_their_words():
    text = trace(failed(ValueError("their " + "words \x00 \ud83d")))

    text.encode("utf-8")
    assert text.index("ValueError") < text.index("KeyError")
    assert "words \x00" not in text
    assert "words  ?" not in text

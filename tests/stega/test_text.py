"""stega/text.py: what PostgreSQL, a log and a page can all take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stega.text import clean, trace


@given(st.text(st.characters(), max_size=300))
def test_clean_text_has_no_nul_no_half_pair_and_the_length_allowed(text):
    cleaned = clean(text, 100)

    cleaned.encode("utf-8")
    assert "\x00" not in cleaned
    assert len(cleaned) <= 100


@pytest.mark.parametrize("text", ["", "plain", "Não 💎", r"talks about \u0000 only"])
def test_harmless_text_is_kept(text):
    assert clean(text, 100) == text


def test_a_traceback_that_quotes_a_stranger_is_clean():
    text = trace(ValueError("bad \x00 \ud83d"))

    text.encode("utf-8")
    assert "ValueError: bad  ?" in text

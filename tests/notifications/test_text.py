import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifications.text import single_line, slack_escape

LINE_BREAKS = ["\r\n", "\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("line_break", LINE_BREAKS)
def test_every_kind_of_line_break_becomes_a_blank(line_break):
    assert single_line(f"Down{line_break}Bcc: boss@example.com", 100) == "Down Bcc: boss@example.com"


def test_what_no_medium_can_carry_becomes_a_blank():
    assert single_line("a\x00b\ud800c\x1bd", 100) == "a b c d"


def test_the_order_of_letters_cannot_be_turned_around():
    assert single_line("invoice\u202efdp.exe", 100) == "invoicefdp.exe"


def test_a_long_line_is_cut_with_an_ellipsis():
    assert single_line("abcdef", 5) == "abcd…"


@given(st.text(st.characters(codec=None)), st.integers(1, 50))
def test_a_line_is_always_one_printable_line_within_its_limit(text, limit):
    line = single_line(text, limit)

    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
    line.encode()


def test_slack_escapes_the_ampersand_first_and_once():
    assert slack_escape("<!channel> & <@U1>", 100) == "&lt;!channel&gt; &amp; &lt;@U1&gt;"


def test_a_cut_never_leaves_half_an_entity():
    assert slack_escape("abc<def", 7) == "abc…"


@given(st.text(alphabet="<>&;ampltg! x", max_size=60), st.integers(1, 40))
def test_escaped_text_has_no_markup_and_only_whole_entities(text, limit):
    escaped = slack_escape(text, limit)

    assert len(escaped) <= limit
    assert "<" not in escaped
    assert ">" not in escaped
    assert re.sub(r"&(amp|lt|gt);", "", escaped).count("&") == 0

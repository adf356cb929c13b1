import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifications.text import single_line, slack_escape, without_addresses, without_quotes

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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("550 5.1.1 <jane@example.com>: no such user", "550 5.1.1 <…@example.com>: no such user"),
        ("to=jane.o'neil+x@example.com, from='a@b.example'", "to=…@example.com, from=…@b.example'"),
        ('"jane doe"@example.com', "…@example.com"),
        ("450 try @ noon", "450 try @ noon"),
        ("no address", "no address"),
    ],
)
def test_an_address_is_told_without_whose_it_is(text, told):
    assert without_addresses(text) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("554 contains 'Printer on fire'!", "554 contains '…'!"),
        ("554 PRINTER ON FIRE, and printer on fire", "554 …, and …"),
        ("554 Printer on", "554 Printer on"),
        ("554 burns like hell, looks like spam", "554 …, looks like spam"),
        ("", ""),
    ],
)
def test_what_is_quoted_is_left_out_and_what_is_said_beside_it_stays(text, told):
    assert without_quotes(text, "[#12] Printer on fire\nIt burns\nlike hell") == told


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

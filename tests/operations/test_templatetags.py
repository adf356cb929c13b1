"""operations/templatetags/console.py: names, as a narrow page shows them."""

import pytest

from operations.templatetags.console import breakable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("sla_breach_dispatcher", "sla_<wbr>breach_<wbr>dispatcher"),
        ("ticket.sla_breached", "ticket.<wbr>sla_<wbr>breached"),
        ("outbox", "outbox"),
        ("a_<b>.", "a_&lt;b&gt;."),
        ("–", "–"),
    ],
)
def test_a_name_may_be_broken_between_its_words(name, shown):
    assert breakable(name) == shown

"""Asking for an action, as a person does with the console."""

import re

import pytest
from django.urls import reverse
from django.utils.http import urlencode

from operations.models import Kind

REASON = "The mailbox works again"


each_kind = pytest.mark.parametrize("kind", list(Kind))


def address(kind, target):
    return f"{reverse('operations:act', args=[kind])}?{urlencode(target)}"


def answer_to(browser, where, reason=REASON):
    """What a person answers to the question on the page: its hidden parts and a reason."""
    hidden = re.findall(r'name="(key|up_to)" value="([^"]*)"', browser.get(where).content.decode())
    return {**dict(hidden), "reason": reason}


def confirm(browser, where, reason=REASON):
    return browser.post(where, answer_to(browser, where, reason))

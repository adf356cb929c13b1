"""Every page that tells why something was given up tells it in the reader's language."""

import uuid

import pytest
from django.utils import timezone

from accounts.models import User
from operations.models import Kind, OperatorAction
from stega import outbox
from stega.models import OutboxEntry

REASON, ITS_WORDS = "payload inválido: falta email em ticket.welcome", "bad payload: ticket.welcome lacks email"


@pytest.fixture
def browser(as_user, operator):
    User.objects.filter(pk=operator.pk).update(language="pt-br")
    return as_user(operator)


@pytest.fixture
def pages(letters, group, operator, browser):
    """What each page says, by its name."""
    action = OperatorAction.objects.create(
        kind=Kind.PURGE_GROUP, actor=operator, target=group, count=1, reason="-", detail=ITS_WORDS, outcome="All done"
    )
    addresses = {
        "groups": ("/admin/operations/dead-letters/", {}),
        "group": ("/admin/operations/dead-letters/group/", group),
        "letter": (f"/admin/operations/dead-letters/{letters['bad'][0]}/", {}),
        "question": ("/admin/operations/do/purge_group/", group),
        "action": (f"/admin/operations/record/{action.pk}/", {}),
        "record": ("/admin/operations/record/", {}),
    }
    return {name: browser.get(*address).content.decode() for name, address in addresses.items()}


def test_reasons_of_dead_letters(pages):
    assert {name for name, text in pages.items() if REASON not in text} == set()
    assert {name for name, text in pages.items() if f">{ITS_WORDS}" in text} == set()


@pytest.mark.parametrize("address", ["/admin/operations/outbox/?state=given_up", "/admin/operations/events/{key}/"])
def test_errors_of_outbox_entries(browser, address):
    key = uuid.uuid4()
    OutboxEntry.objects.create(key=key, task="x", failed_at=timezone.now(), last_error=outbox.NEVER_ENDS)

    text = browser.get(address.format(key=key)).content.decode()

    assert "Toda execução foi cortada por TASK_TIMEOUT_SECONDS" in text
    assert outbox.NEVER_ENDS not in text

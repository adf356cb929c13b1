import uuid

import pytest

from accounts.models import Role, User
from notifications.models import Delivery, State
from notifications.notice import Channel

pytestmark = pytest.mark.django_db

LIST = "/admin/notifications/delivery/"


@pytest.fixture
def delivery():
    return Delivery.objects.create(
        event_key=uuid.uuid4(),
        event_type="ticket.sla_breached",
        ticket_id=12,
        channel=Channel.EMAIL,
        recipient="user:5",
        address="agent@example.com",
        state=State.SENT,
    )


@pytest.fixture
def superuser_client(client):
    client.force_login(
        User.objects.create_superuser("admin", "admin@example.com", "not a secret", role=Role.ADMIN.value)
    )
    return client


@pytest.mark.parametrize("query", ["agent@example.com", "12", "user:5", "not a uuid", "99999999999999999999", "é"])
def test_the_ledger_can_be_searched(superuser_client, delivery, query):
    assert superuser_client.get(LIST, {"q": query}).status_code == 200


def test_a_search_finds_the_delivery_of_a_ticket(superuser_client, delivery):
    assert "agent@example.com" in superuser_client.get(LIST, {"q": "12"}).content.decode()


def test_a_delivery_can_be_read(superuser_client, delivery):
    assert superuser_client.get(f"{LIST}{delivery.pk}/change/").status_code == 200


@pytest.mark.parametrize("page", ["add/", "{pk}/delete/"])
def test_the_ledger_is_not_written_by_hand(superuser_client, delivery, page):
    assert superuser_client.get(LIST + page.format(pk=delivery.pk)).status_code == 403


def test_a_change_by_hand_is_refused(superuser_client, delivery):
    assert superuser_client.post(f"{LIST}{delivery.pk}/change/", {"state": "failed"}).status_code == 403


def test_the_circuits_which_know_a_webhook_by_a_digest_alone_are_left_to_the_console(superuser_client):
    assert superuser_client.get("/admin/notifications/circuit/").status_code == 404


def test_why_somebody_was_not_told_is_said_in_the_readers_language(superuser_client, delivery):
    Delivery.objects.update(state=State.SKIPPED, reason="No longer the assignee")
    User.objects.update(language="pt-br")

    page = superuser_client.get(f"{LIST}{delivery.pk}/change/").content.decode()

    assert "Não é mais o responsável" in page
    assert "No longer the assignee" not in page


def test_the_ledger_calls_an_event_as_the_ticket_page_does(superuser_client, delivery):
    assert '<td class="field-event">SLA breached</td>' in superuser_client.get(LIST).content.decode()

"""Who may do what: one row per page or action, one column per role."""

import pytest
from django.urls import reverse
from django.utils.http import urlencode

from operations.models import Kind, OperatorAction
from operations.targets import TARGETS
from tests.factories import make_ticket
from tests.operations.console.lists import PAGES

KEY = "00000000-0000-4000-8000-000000000000"
TARGET = {"id": "1", "queue": "q", "consumer": "c", "type": "t", "cause": "x", "key": KEY, "name": "outbox sweep"}


def question(kind: Kind) -> str:
    parts = {part: TARGET[part] for part in TARGETS[kind].parts}
    return f"{reverse('operations:act', args=[kind.value])}?{urlencode(parts)}"


@pytest.mark.parametrize(
    ("role", "status"),
    [
        ("viewer", 200),
        ("operator", 200),
        ("reader", 200),
        ("admin", 200),
        ("colleague", 403),
        ("unstaffed", 403),
        ("agent", 403),
        ("customer", 403),
    ],
)
def test_the_pages_are_for_those_who_may_see_them(as_user, request, role, status):
    page = as_user(request.getfixturevalue(role))

    seen = {name: page.get(reverse(f"operations:{name}")).status_code for name in PAGES}

    assert seen == dict.fromkeys(PAGES, status)


@pytest.mark.parametrize("role", ["viewer", "reader", "colleague", "unstaffed", "agent", "customer"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_the_actions_are_for_operators(as_user, request, role, method):
    page = as_user(request.getfixturevalue(role))

    refused = {kind: getattr(page, method)(question(kind), {"reason": "why", "key": KEY}).status_code for kind in Kind}

    assert refused == dict.fromkeys(Kind, 403)
    assert not OperatorAction.objects.exists()


@pytest.mark.parametrize("name", ["overview", "dead_letters", "actions"])
def test_who_has_not_signed_in_is_asked_to(client, transactional_db, name):
    response = client.get(reverse(f"operations:{name}"))

    assert response.status_code == 302
    assert response["Location"].startswith(reverse("accounts:login"))


@pytest.mark.parametrize(("role", "is_offered"), [("operator", True), ("viewer", False)])
def test_only_operators_are_offered_actions(as_user, request, letters, role, is_offered):
    page = as_user(request.getfixturevalue(role)).get(reverse("operations:dead_letters"))

    assert ("/do/replay_group/" in page.content.decode()) is is_offered


@pytest.mark.parametrize(
    ("role", "is_shown"), [("reader", True), ("admin", True), ("operator", False), ("viewer", False)]
)
def test_payloads_are_for_those_who_may_read_them(as_user, request, letters, role, is_shown):
    address = reverse("operations:dead_letter", args=[letters["bad"][0]])

    page = as_user(request.getfixturevalue(role)).get(address)

    assert ("customer@example.com" in page.content.decode()) is is_shown


@pytest.mark.parametrize(("role", "is_linked"), [("viewer", True), ("colleague", False)])
def test_the_ticket_links_to_its_events_for_those_who_may_see_them(
    as_user, request, customer, product, role, is_linked
):
    ticket = make_ticket(customer, product)

    page = as_user(request.getfixturevalue(role)).get(ticket.get_absolute_url())

    assert (reverse("operations:ticket", args=[ticket.pk]) in page.content.decode()) is is_linked


@pytest.mark.parametrize(("role", "is_linked"), [("viewer", True), ("colleague", False)])
def test_the_admin_links_to_the_console_for_those_who_may_see_it(as_user, request, role, is_linked):
    index = as_user(request.getfixturevalue(role)).get(reverse("admin:index"))

    assert (f'href="{reverse("operations:overview")}"' in index.content.decode()) is is_linked

"""The list of tickets: whose, in what order, filtered by what; also when asked for nonsense."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_product, make_ticket
from tests.tickets.views.pages import HUGE, texts

pytestmark = pytest.mark.django_db


def test_the_front_page_is_the_list(client):
    assert client.get("/").url == "/tickets/"


def test_the_list_shows_only_what_the_person_may_see(as_user, customer, outsider, product):
    make_ticket(customer, product, title="Mine")
    make_ticket(outsider, product, title="Theirs")

    shown = texts(as_user(customer).get("/tickets/"))

    assert "Mine" in shown
    assert "Theirs" not in shown


def test_the_list_takes_the_same_number_of_queries_for_any_number_of_tickets(
    as_user, agent, customer, product, django_assert_max_num_queries
):
    for _ in range(20):
        make_ticket(customer, product, assignee=agent)
    browser = as_user(agent)

    with django_assert_max_num_queries(6):
        browser.get("/tickets/")


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("", {"Slow", "Broken", "Lost"}),
        ("q=sLo", {"Slow"}),
        ("q=100%25", set()),
        ("status=waiting", {"Lost"}),
        ("priority=critical", {"Broken"}),
        ("assigned=me", {"Broken"}),
        ("assigned=nobody", {"Slow", "Lost"}),
        ("status=open&assigned=nobody", {"Slow"}),
    ],
)
def test_the_list_can_be_filtered(as_user, agent, customer, product, query, titles):
    make_ticket(customer, product, title="Slow")
    make_ticket(customer, product, title="Broken", priority="critical", assignee=agent)
    make_ticket(customer, product, title="Lost", status="waiting")

    response = as_user(agent).get(f"/tickets/?{query}")

    assert {ticket.title for ticket in response.context["page"]} == titles


@pytest.mark.parametrize(
    ("who", "query", "titles"),
    [
        ("customer", "", ["done", "soon", "late"]),
        ("admin", "", ["late", "soon", "done"]),
        ("admin", "sort=updated", ["done", "soon", "late"]),
        ("admin", "sort=opened", ["late", "done", "soon"]),
        ("customer", "sort=deadline", ["late", "soon", "done"]),
        ("customer", "sort=nonsense", ["done", "soon", "late"]),
    ],
)
def test_the_list_is_sorted_by_what_its_reader_needs(as_user, request, customer, product, who, query, titles):
    now = timezone.now()
    ages = {"late": (1, 9, -1), "soon": (3, 5, 1), "done": (2, 1, -2)}  # hours: opened, updated, due
    for title, (opened, updated, due) in ages.items():
        make_ticket(
            customer,
            product,
            title=title,
            status="resolved" if title == "done" else "waiting",
            created_at=now - timedelta(hours=opened),
            updated_at=now - timedelta(hours=updated),
            due_in=timedelta(hours=due),
        )

    response = as_user(request.getfixturevalue(who)).get(f"/tickets/?{query}")

    assert [ticket.title for ticket in response.context["page"]] == titles


def test_sorting_is_no_filter(as_user, customer):
    assert "There is no ticket here yet." in texts(as_user(customer).get("/tickets/?sort=opened"))


def test_the_list_can_be_filtered_by_product(as_user, customer, product):
    other = make_product("Other")
    make_ticket(customer, product)
    wanted = make_ticket(customer, other)

    response = as_user(customer).get(f"/tickets/?product={other.pk}")

    assert list(response.context["page"]) == [wanted]


@pytest.mark.parametrize(
    "query",
    [
        "page=0",
        "page=-1",
        "page=abc",
        f"page={HUGE}",
        "page=%00",
        "q=a%00b",
        "q=%ED%A0%BD",
        f"q={'x' * 300}",
        "status=nonsense",
        "priority=%00",
        "product=abc",
        f"product={HUGE}",
        "product=%00",
        "assigned=everybody",
        "status=open&status=closed",
    ],
)
def test_a_list_asked_for_nonsense_is_still_a_list(as_user, agent, ticket, query):
    response = as_user(agent).get(f"/tickets/?{query}")

    assert response.status_code == 200


def test_the_pager_keeps_the_filters(as_user, customer, product):
    for _ in range(30):
        make_ticket(customer, product)

    shown = texts(as_user(customer).get("/tickets/?status=open"))

    assert "?status=open&amp;page=2" in shown


def test_a_deadline_is_shown_with_its_exact_time(as_user, agent, customer, product):
    make_ticket(customer, product, due_in=timedelta(hours=3, minutes=30))
    make_ticket(customer, product, due_in=timedelta(hours=-2, minutes=-30))

    shown = texts(as_user(agent).get("/tickets/"))

    assert ">in 3 h</time>" in shown
    assert ">overdue by 2 h</time>" in shown
    assert 'title="' in shown

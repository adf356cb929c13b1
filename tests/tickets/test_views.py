"""The pages of the help desk: what they show to whom, and what they do with bad input."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape
from hypothesis import HealthCheck, given
from hypothesis import settings as trials
from hypothesis import strategies as st

from accounts.models import User
from stega.models import OutboxEntry
from tests.factories import make_product, make_ticket
from tickets import actions
from tickets.models import Comment, Ticket, TicketEvent

pytestmark = pytest.mark.django_db

HUGE = "9" * 5_000
BAD_TEXT = [
    pytest.param("", id="empty"),
    pytest.param("   \n ", id="blank"),
    pytest.param("x" * 20_001, id="too long"),
    pytest.param("a\x00b", id="NUL"),
]


@pytest.fixture
def ticket(customer, product):
    return make_ticket(customer, product)


def page(ticket, step=None):
    return reverse(f"tickets:{step or 'detail'}", args=[ticket.pk])


def texts(response):
    return response.content.decode()


def nothing_written():
    return not (TicketEvent.objects.exists() or Comment.objects.exists() or OutboxEntry.objects.exists())


@pytest.mark.parametrize("path", ["/tickets/", "/tickets/new/", "/tickets/1/", "/tickets/1/comment/"])
def test_who_is_not_signed_in_is_asked_to_sign_in(client, path):
    response = client.get(path)

    assert response.url == f"/accounts/login/?next={path}"


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


def test_a_customer_opens_a_ticket(as_user, customer, product):
    form = {"title": "Down", "body": "All\r\nof it", "product": product.pk, "priority": "critical"}

    response = as_user(customer).post("/tickets/new/", form)

    ticket = Ticket.objects.get()
    assert response.url == page(ticket)
    assert (ticket.author, ticket.title, ticket.body, ticket.priority) == (customer, "Down", "All\nof it", "critical")


def test_a_form_sent_twice_opens_one_ticket(as_user, customer, product):
    browser = as_user(customer)
    key = browser.get("/tickets/new/").context["form"]["form_key"].value()
    form = {"title": "Down", "body": "It", "product": product.pk, "priority": "low", "form_key": key}

    first, second = browser.post("/tickets/new/", form), browser.post("/tickets/new/", form)

    assert first.url == second.url == page(Ticket.objects.get())


def test_the_form_of_one_person_says_nothing_of_anothers_ticket(as_user, customer, outsider, product):
    form = {"title": "Down", "body": "It", "product": product.pk, "priority": "low", "form_key": uuid.uuid4()}
    first = as_user(customer).post("/tickets/new/", form)

    second = as_user(outsider).post("/tickets/new/", form)

    assert first.url != second.url
    assert {ticket.author for ticket in Ticket.objects.all()} == {customer, outsider}


def test_a_refused_form_keeps_its_key(as_user, customer, product):
    key = uuid.uuid4()

    response = as_user(customer).post("/tickets/new/", {"title": "Down", "form_key": key})

    assert f'value="{key}"' in response.content.decode()


def test_a_title_is_one_line(as_user, customer, product):
    form = {"title": "Down\r\nBcc: all\u2028now", "body": "It", "product": product.pk, "priority": "low"}

    as_user(customer).post("/tickets/new/", form)

    assert Ticket.objects.get().title == "Down Bcc: all now"


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": ""},
        {"title": "x" * 10_000},
        {"title": "a\x00b"},
        {"body": ""},
        {"body": "x" * 20_001},
        {"body": "a\x00b"},
        {"product": ""},
        {"product": "4711"},
        {"product": "abc"},
        {"product": HUGE},
        {"product": "\x00"},
        {"priority": "urgent"},
        {"priority": "\x00"},
    ],
)
def test_a_wrong_field_is_named_and_the_rest_is_kept(as_user, customer, product, wrong):
    form = {"title": "Down", "body": "All of it", "product": product.pk, "priority": "critical", **wrong}

    response = as_user(customer).post("/tickets/new/", form)

    [field] = wrong
    assert response.status_code == 200
    assert list(response.context["form"].errors) == [field]
    assert "All of it" in texts(response) or field == "body"
    assert not Ticket.objects.exists()
    assert nothing_written()


def test_an_inactive_product_cannot_be_chosen(as_user, customer):
    retired = make_product("Retired", is_active=False)
    form = {"title": "Down", "body": "All of it", "product": retired.pk, "priority": "low"}

    response = as_user(customer).post("/tickets/new/", form)

    assert "product" in response.context["form"].errors


def test_half_an_emoji_is_stored_as_a_replacement_character(as_user, customer, product):
    body = f"title=Down+%ED%A0%BD&body=x&product={product.pk}&priority=low"

    as_user(customer).post("/tickets/new/", body, content_type="application/x-www-form-urlencoded")

    assert Ticket.objects.get().title == "Down \ufffd\ufffd\ufffd"


@pytest.mark.parametrize("title", ["<script>alert(1)</script>", "{{ 7|add:7 }}", "'\"><img src=x onerror=alert(1)>"])
def test_text_is_shown_literally(as_user, customer, product, title):
    ticket = make_ticket(customer, product, title=title, body=title)
    actions.comment(customer, ticket.pk, title)

    shown = texts(as_user(customer).get(page(ticket)))

    assert "<script>alert" not in shown
    assert "<img src=x" not in shown
    assert "{{ 7|add:7 }}" in shown or "{" not in title


@trials(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(codec="utf-8"), min_size=1, max_size=80))
def test_any_text_is_refused_or_shown_as_it_is(as_user, customer, product, text):
    browser = as_user(customer)
    form = {"title": "Any", "body": text, "product": product.pk, "priority": "low"}

    opened = browser.post("/tickets/new/", form)

    if opened.status_code == 302:
        assert escape(text.replace("\r\n", "\n").strip()) in texts(browser.get(opened.url))
    else:
        assert opened.context["form"].errors.keys() == {"body"}


@pytest.mark.parametrize("who", ["outsider", "other_agent"])
def test_a_foreign_ticket_is_not_found(as_user, request, who, agent, customer, product):
    ticket = make_ticket(customer, product, assignee=agent)

    response = as_user(request.getfixturevalue(who)).get(page(ticket))

    assert response.status_code == 404


@pytest.mark.parametrize(
    "path", ["/tickets/0/", "/tickets/99999999999999999999/", f"/tickets/{HUGE}/", "/tickets/%00/"]
)
def test_a_ticket_that_does_not_exist_is_not_found(as_user, admin, path):
    assert as_user(admin).get(path).status_code == 404


@pytest.mark.parametrize("debug", [True, False])
def test_a_ticket_that_is_not_found_gets_a_page_in_the_language_of_the_user(as_user, customer, settings, debug):
    settings.DEBUG = debug
    customer.language = "pt-br"
    customer.save()

    response = as_user(customer).get("/tickets/4711/")

    assert response.status_code == 404
    assert "Não encontrado" in texts(response)


@pytest.mark.parametrize(
    ("step", "form"),
    [
        ("comment", {"body": "Hello"}),
        ("status", {"status": "resolved"}),
        ("priority", {"priority": "low"}),
        ("assign", {"assignee": "nobody"}),
        ("take", {}),
    ],
)
def test_an_outsider_can_do_nothing_to_a_ticket(as_user, outsider, ticket, step, form):
    response = as_user(outsider).post(page(ticket, step), form)

    assert response.status_code == 404
    assert nothing_written()


@pytest.mark.parametrize(
    ("step", "form"),
    [
        ("status", {"status": "resolved"}),
        ("priority", {"priority": "low"}),
        ("assign", {"assignee": "nobody"}),
        ("take", {}),
    ],
)
def test_a_customer_can_only_comment(as_user, customer, ticket, step, form):
    response = as_user(customer).post(page(ticket, step), form)

    assert response.status_code == 403
    assert nothing_written()


@pytest.mark.parametrize("step", ["status", "priority", "assign", "take"])
def test_a_customer_is_refused_whatever_the_form_says(as_user, customer, ticket, step):
    assert as_user(customer).post(page(ticket, step), {}).status_code == 403


@pytest.mark.parametrize(
    ("step", "value"), [("status", "resolved"), ("priority", "low"), ("assign", ""), ("take", ""), ("comment", "")]
)
def test_a_ticket_closed_meanwhile_says_so_on_its_page(as_user, agent, other_agent, customer, product, step, value):
    ticket = make_ticket(customer, product, assignee=None if step == "take" else agent, status="closed")
    form = {"body": "Hi", "assignee": other_agent.pk, "status": value, "priority": value}

    response = as_user(agent).post(page(ticket, step), form, follow=True)

    assert response.status_code == 200
    assert [str(message) for message in response.context["messages"]] == ["This ticket is closed."]
    assert response.context["ticket"] == ticket


@pytest.mark.parametrize(
    ("step", "form"),
    [
        ("status", {"status": "nonsense"}),
        ("status", {}),
        ("status", {"status": "\x00"}),
        ("priority", {"priority": "urgent"}),
        ("priority", {"priority": ""}),
        ("assign", {"assignee": ""}),
        ("assign", {"assignee": "4711"}),
        ("assign", {"assignee": HUGE}),
        ("assign", {"assignee": "\x00"}),
    ],
)
def test_a_value_that_is_not_offered_is_refused_with_a_message(as_user, admin, ticket, step, form):
    response = as_user(admin).post(page(ticket, step), form, follow=True)

    assert [message.level_tag for message in response.context["messages"]] == ["error"]
    assert nothing_written()


@pytest.mark.parametrize("body", BAD_TEXT)
def test_a_bad_comment_is_refused_and_kept_for_correction(as_user, customer, ticket, body):
    response = as_user(customer).post(page(ticket, "comment"), {"body": body})

    assert response.status_code == 200
    assert "body" in response.context["comment_form"].errors
    assert nothing_written()


def test_a_comment_of_the_full_length_counts_each_line_end_once(as_user, customer, ticket):
    body = "x\n" * 9_999 + "xx"

    as_user(customer).post(page(ticket, "comment"), {"body": body.replace("\n", "\r\n")})

    assert Comment.objects.get().body == body


def test_what_was_meant_to_be_internal_is_never_published(as_user, customer, ticket):
    response = as_user(customer).post(page(ticket, "comment"), {"body": "Between us", "is_internal": "on"})

    assert "You may not write internal comments." in texts(response)
    assert "Between us</textarea>" in texts(response)
    assert nothing_written()


@pytest.mark.parametrize("body", ["Half an hour of <work>", "x" * 20_001])
def test_a_comment_on_a_ticket_closed_meanwhile_is_given_back(as_user, customer, product, body):
    ticket = make_ticket(customer, product, status="closed")

    response = as_user(customer).post(page(ticket, "comment"), {"body": body})

    assert f"{escape(body)}</textarea>" in texts(response)


@pytest.mark.parametrize("body", ["Half an hour of <work>", "x" * 20_001])
def test_a_comment_on_a_ticket_that_another_has_taken_is_given_back(
    as_user, agent, other_agent, customer, product, body
):
    ticket = make_ticket(customer, product, assignee=other_agent)

    response = as_user(agent).post(page(ticket, "comment"), {"body": body})

    assert response.status_code == 404
    assert f"{escape(body)}</textarea>" in texts(response)


def test_a_ticket_that_takes_no_more_comes_back_with_its_form_filled(as_user, customer, product, monkeypatch):
    def retired(*args, **kwargs):
        raise actions.Conflict("This product takes no new tickets.")

    monkeypatch.setattr(actions, "open_ticket", retired)
    form = {"title": "Down", "body": "All of <it>", "product": product.pk, "priority": "low"}

    response = as_user(customer).post("/tickets/new/", form)

    assert "All of &lt;it&gt;</textarea>" in texts(response)


def test_a_customer_sees_neither_internal_comments_nor_history(as_user, customer, agent, ticket):
    actions.comment(agent, ticket.pk, "Between us", internal=True)

    response = as_user(customer).get(page(ticket))

    assert "Between us" not in texts(response)
    assert response.context["history"] is None


def test_staff_sees_internal_comments_and_history(as_user, agent, ticket):
    actions.comment(agent, ticket.pk, "Between us", internal=True)

    shown = texts(as_user(agent).get(page(ticket)))

    assert "Between us" in shown
    assert "added an internal comment" in shown


def test_the_history_says_every_kind_of_event(as_user, admin, agent, customer, product):
    ticket = actions.open_ticket(customer, product, "Down", "It", "low")
    actions.assign(admin, ticket.pk, agent)
    actions.assign(admin, ticket.pk, None)
    actions.change_status(admin, ticket.pk, "waiting")
    actions.change_priority(admin, ticket.pk, "high")
    actions.comment(admin, ticket.pk, "Hello")
    TicketEvent.objects.create(ticket=ticket, type="sla_breached", created_at=timezone.now())

    shown = texts(as_user(admin).get(page(ticket)))

    assert "assigned the ticket to Agent" in shown
    assert "unassigned Agent" in shown
    assert "from “Open” to “Waiting for customer”" in shown
    assert "from “Low” to “High”" in shown
    assert "the SLA deadline has passed" in shown


@pytest.mark.parametrize(
    ("who", "forms"),
    [
        ("customer", set()),
        ("agent", {"status_form", "priority_form", "assignee_form"}),
        ("admin", {"status_form", "priority_form", "assignee_form"}),
    ],
)
def test_the_page_offers_the_forms_the_person_may_use(as_user, request, who, customer, agent, product, forms):
    ticket = make_ticket(customer, product, assignee=agent)

    context = as_user(request.getfixturevalue(who)).get(page(ticket)).context

    assert {name for name in ("status_form", "priority_form", "assignee_form") if name in context} == forms


@pytest.mark.parametrize("name", ["status", "priority", "assignee"])
def test_no_change_is_chosen_before_the_person_chooses(as_user, admin, agent, customer, product, name):
    ticket = make_ticket(customer, product, assignee=agent)

    field = as_user(admin).get(page(ticket)).context[f"{name}_form"][name]

    values = [str(value) for value, _label in field.field.choices]
    assert values[0] == ""
    assert field.value() in (None, "")
    assert field.field.required
    assert str(getattr(ticket, f"{name}_id" if name == "assignee" else name)) not in values


def test_an_admin_leaves_a_ticket_to_nobody(as_user, admin, agent, customer, product):
    ticket = make_ticket(customer, product, assignee=agent)

    as_user(admin).post(page(ticket, "assign"), {"assignee": "nobody"})

    ticket.refresh_from_db()
    assert ticket.assignee is None


def test_an_agent_takes_a_ticket_with_one_click(as_user, agent, ticket):
    response = as_user(agent).post(page(ticket, "take"))

    ticket.refresh_from_db()
    assert (response.url, ticket.assignee) == (page(ticket), agent)


@pytest.mark.parametrize(
    ("who", "assigned", "told"), [("agent", False, True), ("agent", True, False), ("admin", False, False)]
)
def test_an_agent_is_told_how_to_change_what_nobody_has(
    as_user, request, agent, customer, product, who, assigned, told
):
    ticket = make_ticket(customer, product, assignee=agent if assigned else None)

    shown = texts(as_user(request.getfixturevalue(who)).get(page(ticket)))

    assert ("Take this ticket to change its status." in shown) == told


def test_who_comes_too_late_does_not_learn_who_was_first(as_user, agent, other_agent, ticket):
    actions.take(agent, ticket.pk)

    response = as_user(other_agent).post(page(ticket, "take"))

    assert response.status_code == 404
    assert "taken" not in response.content.decode()


def test_an_admin_assigns_resolves_and_reprioritises(as_user, admin, agent, ticket):
    browser = as_user(admin)

    browser.post(page(ticket, "assign"), {"assignee": agent.pk})
    browser.post(page(ticket, "priority"), {"priority": "high"})
    browser.post(page(ticket, "status"), {"status": "resolved"})

    ticket.refresh_from_db()
    assert (ticket.assignee, ticket.priority, ticket.status) == (agent, "high", "resolved")


@pytest.mark.parametrize("step", ["comment", "status", "priority", "assign", "take"])
def test_a_step_visited_with_the_browser_shows_the_ticket(as_user, admin, ticket, step):
    assert as_user(admin).get(page(ticket, step)).url == page(ticket)


def test_a_form_without_its_token_is_refused_in_the_language_of_the_user(customer, ticket):
    customer.language = "pt-br"
    customer.save()
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(customer)

    response = browser.post(page(ticket, "comment"), {"body": "Hello"})

    assert response.status_code == 403
    assert "O formulário expirou" in texts(response)
    assert nothing_written()


def test_a_wrong_role_gets_a_page_in_the_language_of_the_user(as_user, customer, ticket):
    customer.language = "pt-br"
    customer.save()

    response = as_user(customer).post(page(ticket, "status"), {"status": "resolved"})

    assert "Não permitido" in texts(response)


def test_times_are_shown_in_the_time_zone_of_the_user(as_user, customer, product):
    ticket = make_ticket(customer, product, sla_due_at=datetime(2030, 3, 1, 23, 30, tzinfo=UTC))
    User.objects.update(time_zone="Asia/Tokyo")

    assert "March 2, 2030, 8:30 a.m. (Asia/Tokyo)" in texts(as_user(customer).get(page(ticket)))


@pytest.mark.parametrize(("template", "title"), [("400.html", "Bad request"), ("500.html", "Something went wrong")])
def test_the_page_of_a_fault_needs_nothing(template, title):
    assert title in render_to_string(template)


def test_a_form_of_three_megabytes_is_refused(as_user, customer, ticket):
    response = as_user(customer).post(page(ticket, "comment"), {"body": "x" * 3_000_000})

    assert response.status_code == 400
    assert nothing_written()


def test_the_slack_webhook_is_on_no_page(as_user, admin, customer):
    product = make_product(slack_webhook_url="https://hooks.example.com/services/secret")
    ticket = make_ticket(customer, product)
    browser = as_user(admin)

    pages = ["/tickets/", "/tickets/new/", page(ticket), f"/admin/tickets/product/{product.pk}/change/"]

    assert not [path for path in pages if "services/secret" in texts(browser.get(path))]

"""Signing in: the one door, the first time through it, and what it does with bad input."""

from datetime import UTC, datetime

import pytest
from django.test import Client

from accounts import actions
from accounts.models import User
from stega.models import OutboxEntry
from stega.pgque.publishing import event_key
from tests.factories import PASSWORD
from tests.support.together import at_once

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
LOGIN = "/accounts/login/"


def sign_in(client, username="customer", password=PASSWORD, **more):
    return client.post(LOGIN, {"username": username, "password": password, **more})


def test_the_first_sign_in_promises_the_welcome(client, customer):
    response = sign_in(client)

    entry = OutboxEntry.objects.get()
    assert response.url == "/"
    assert (entry.task, entry.args) == ("send_welcome_notification", [customer.pk])
    assert entry.key == event_key("ticket.welcome", customer.pk)


def test_the_second_sign_in_promises_nothing(client, customer):
    sign_in(client)
    sign_in(Client())

    assert OutboxEntry.objects.count() == 1


def test_a_first_sign_in_that_cannot_be_promised_is_not_recorded(customer, settings):
    settings.TASKS = {}

    with pytest.raises(ValueError, match="TASKS"):
        actions.record_first_sign_in(customer, NOW)

    customer.refresh_from_db()
    assert customer.first_signed_in_at is None


def test_only_the_first_of_two_records_counts(customer):
    assert actions.record_first_sign_in(customer, NOW) is True
    assert actions.record_first_sign_in(customer, NOW) is False


@pytest.mark.django_db(databases=["default", "jobs"], transaction=True)
def test_of_many_sign_ins_at_once_one_is_the_first(customer):
    firsts = at_once(lambda _: actions.record_first_sign_in(customer, NOW), range(6))

    assert sorted(firsts) == [False] * 5 + [True]
    assert OutboxEntry.objects.count() == 1


def test_a_user_without_a_language_gets_that_of_the_browser(client, customer):
    client.post(LOGIN, {"username": "customer", "password": PASSWORD}, headers={"accept-language": "pt-BR,pt;q=0.9"})

    assert User.objects.get().language == "pt-br"


def test_a_user_keeps_the_language_they_chose(client, customer):
    User.objects.update(language="en")

    client.post(LOGIN, {"username": "customer", "password": PASSWORD}, headers={"accept-language": "pt-BR"})

    assert User.objects.get().language == "en"


@pytest.mark.parametrize(
    "wrong",
    [
        {"password": "wrong"},
        {"password": ""},
        {"password": "a\x00b"},
        {"username": "nobody"},
        {"username": ""},
        {"username": "a\x00b"},
        {"username": "x" * 10_000},
        {"username": "\ufffd"},
    ],
)
def test_a_wrong_sign_in_is_a_form_error(client, customer, wrong):
    response = sign_in(client, **wrong)

    assert response.status_code == 200
    assert response.context["form"].errors
    assert "_auth_user_id" not in client.session


def test_the_error_is_in_the_language_of_the_browser(client, customer):
    response = client.post(
        LOGIN, {"username": "customer", "password": "wrong"}, headers={"accept-language": "pt-BR,pt;q=0.9"}
    )

    assert "senha" in response.context["form"].non_field_errors()[0]


def test_a_deactivated_user_cannot_sign_in(client, customer):
    User.objects.update(is_active=False)

    assert sign_in(client).status_code == 200


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        ("/tickets/new/", "/tickets/new/"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example/", "/"),
        ("http:///evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("\x00", "/"),
        ("//[", "/"),
    ],
)
def test_nobody_is_sent_to_a_foreign_site(client, customer, wanted, sent):
    assert sign_in(client, next=wanted).url == sent


def test_who_is_signed_in_already_goes_on(as_user, customer):
    assert as_user(customer).get(LOGIN).url == "/"


def test_signing_out_takes_a_post(as_user, customer):
    browser = as_user(customer)

    visit = browser.get("/accounts/logout/")
    assert 'action="/accounts/logout/"' in visit.content.decode()
    assert "_auth_user_id" in browser.session

    response = browser.post("/accounts/logout/", follow=True)
    assert response.redirect_chain == [(LOGIN, 302)]
    assert "You are signed out." in response.content.decode()
    assert "_auth_user_id" not in browser.session


def test_who_is_signed_out_already_is_asked_to_sign_in(client):
    assert client.get("/accounts/logout/").url == LOGIN


def test_the_page_keeps_where_the_person_was_going(client):
    page = client.get(f"{LOGIN}?next=/tickets/new/").content.decode()

    assert '<input type="hidden" name="next" value="/tickets/new/">' in page


@pytest.mark.parametrize("language", ["en", "pt-br"])
def test_each_language_is_offered_by_its_own_name(client, language):
    page = client.get(LOGIN, headers={"accept-language": language}).content.decode()

    assert ">English</button>" in page
    assert ">Português</button>" in page


@pytest.mark.parametrize(
    ("query", "target"),
    [
        ("", "/admin/"),
        ("?next=/admin/tickets/ticket/", "/admin/tickets/ticket/"),
        ("?next=https://evil.example/", "/admin/"),
        ("?next=%00", "/admin/"),
    ],
)
def test_the_admin_signs_in_through_the_same_door(client, query, target):
    response = client.get(f"/admin/login/{query}")

    assert response.url == f"{LOGIN}?next={target}"


def test_who_may_not_use_the_admin_is_told_so(as_user, customer):
    response = as_user(customer).get("/admin/", follow=True)

    assert response.status_code == 403


def test_the_admin_site_takes_no_password_of_its_own(client, admin):
    client.post("/admin/login/", {"username": "admin", "password": PASSWORD})

    assert "_auth_user_id" not in client.session

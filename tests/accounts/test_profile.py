"""The profile page and what follows from it: language and time zone of every page."""

import pytest
from django.utils import timezone, translation

from accounts.middleware import time_zone
from accounts.models import User, time_zone_choices

pytestmark = pytest.mark.django_db

FORM = {"display_name": "Customer", "language": "en", "time_zone": ""}


def test_a_user_chooses_name_language_and_time_zone(as_user, customer):
    as_user(customer).post(
        "/accounts/profile/", {"display_name": " Ana  Lima ", "language": "pt-br", "time_zone": "America/Sao_Paulo"}
    )

    customer.refresh_from_db()
    assert (customer.display_name, customer.language) == ("Ana Lima", "pt-br")
    assert customer.time_zone == "America/Sao_Paulo"


def test_the_answer_is_in_the_chosen_language(as_user, customer):
    response = as_user(customer).post("/accounts/profile/", FORM | {"language": "pt-br"}, follow=True)

    assert 'lang="pt-br"' in response.content.decode()
    assert "Seu perfil foi salvo." in response.content.decode()


@pytest.mark.parametrize(
    "wrong",
    [
        {"display_name": ""},
        {"display_name": "   "},
        {"display_name": "x" * 10_000},
        {"display_name": "a\x00b"},
        {"language": ""},
        {"language": "tlh"},
        {"time_zone": "Mars/Olympus"},
        {"time_zone": "../../etc/passwd"},
        {"time_zone": "\x00"},
    ],
)
def test_a_wrong_profile_is_refused(as_user, customer, wrong):
    response = as_user(customer).post("/accounts/profile/", FORM | wrong)

    customer.refresh_from_db()
    assert list(response.context["form"].errors) == list(wrong)
    assert customer.display_name == "Customer"


def test_nobody_gives_themselves_a_role(as_user, customer):
    as_user(customer).post("/accounts/profile/", FORM | {"role": "admin", "is_superuser": "on"})

    customer.refresh_from_db()
    assert (customer.role, customer.is_superuser) == ("customer", False)


def test_the_language_of_the_user_wins_over_that_of_the_browser(as_user, customer):
    User.objects.update(language="pt-br")

    response = as_user(customer).get("/tickets/", headers={"accept-language": "en"})

    assert response.headers["Content-Language"] == "pt-br"


def test_who_is_not_signed_in_switches_the_language(client):
    client.post("/i18n/setlang/", {"language": "pt-br", "next": "/accounts/login/"})

    assert 'lang="pt-br"' in client.get("/accounts/login/").content.decode()


def test_the_next_person_does_not_inherit_the_time_zone(as_user, client, customer):
    User.objects.update(time_zone="Asia/Tokyo")

    as_user(customer).get("/tickets/")

    assert timezone.get_current_timezone_name() == timezone.get_default_timezone_name()


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "a\x00b"])
def test_a_time_zone_nobody_knows_is_that_of_the_site(name):
    assert time_zone(name) is None


@pytest.fixture(autouse=True)
def language_of_tests():
    with translation.override("en"):
        yield


def test_each_language_is_offered_by_its_own_name(as_user, customer):
    User.objects.update(language="pt-br")

    page = as_user(customer).get("/accounts/profile/").content.decode()

    assert ">English</option>" in page
    assert ">Português</option>" in page


def test_the_zones_offered_are_places_and_utc():
    names = {name for name, _label in time_zone_choices()}

    assert names >= {"UTC", "America/Sao_Paulo", "Europe/Berlin", "Asia/Tokyo"}
    assert not names & {"localtime", "Factory", "Etc/GMT+5", "EST", "US/Pacific", "posix/UTC", "GMT0"}

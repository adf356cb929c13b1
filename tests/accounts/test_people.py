import pytest

from accounts.models import User
from accounts.people import Person, active_admins, people
from accounts.roles import Role
from tests.factories import make_user

pytestmark = pytest.mark.django_db

BEYOND_ANY_ID = 2**64


def test_a_person_is_given_as_they_are_now(customer):
    User.objects.update(display_name="Ana", email="ana@example.com", language="pt-br", time_zone="America/Bahia")

    assert people([customer.pk]) == [Person(customer.pk, "Ana", "ana@example.com", True, "pt-br", "America/Bahia")]


def test_a_person_without_a_display_name_is_called_by_the_username(customer):
    User.objects.update(display_name="")

    assert [person.name for person in people([customer.pk])] == ["customer"]


def test_people_come_in_the_order_of_their_ids_and_without_those_who_are_gone(customer, agent):
    found = people([agent.pk, 4711, BEYOND_ANY_ID, customer.pk])

    assert [person.id for person in found] == [customer.pk, agent.pk]


def test_nobody_is_found_among_nobody():
    assert people([]) == []


def test_admins_who_left_are_no_active_admins(customer, agent, admin):
    make_user("former", Role.ADMIN, is_active=False)

    assert [person.id for person in active_admins()] == [admin.pk]

import pytest
from django.db import IntegrityError, transaction

from accounts.models import User
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def test_a_user_always_has_a_display_name():
    assert User.objects.create_user("ana", "ana@example.com").display_name == "ana"


def test_two_users_may_share_a_mailbox():
    make_user("one", email="team@example.com")
    make_user("two", email="team@example.com")

    assert User.objects.filter(email="team@example.com").count() == 2


def test_the_database_knows_the_roles(customer):
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.update(role="owner")


def test_a_superuser_can_be_made_on_the_command_line():
    assert User.objects.create_superuser("root", "root@example.com", "secret").is_staff


@pytest.mark.parametrize(
    "path", ["/admin/accounts/user/", "/admin/accounts/user/add/", "/admin/accounts/user/{pk}/change/"]
)
def test_users_are_managed_in_the_admin(as_user, admin, path):
    assert as_user(admin).get(path.format(pk=admin.pk)).status_code == 200

"""The demo: there after the first seed, unchanged by the second, and telling nobody."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import User
from stega.models import OutboxEntry
from tickets.checks import demo_stays_at_home
from tickets.models import Product, Ticket
from tickets.workflow import Status

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def demo_settings(settings):
    settings.DEBUG = True


def test_the_three_people_can_sign_in(client):
    call_command("seed_demo")

    assert all(client.login(username=name, password="demo") for name in ("customer", "agent", "admin"))
    assert User.objects.get(is_superuser=True).username == "admin"


def test_seeding_again_changes_nothing():
    call_command("seed_demo")
    before = list(Ticket.objects.values())

    assert call_command("seed_demo") is None

    assert list(Ticket.objects.values()) == before


def test_nobody_is_told_of_the_demo():
    call_command("seed_demo")

    assert not OutboxEntry.objects.exists()


def test_no_demo_ticket_breaches_within_the_hour():
    call_command("seed_demo")

    soon = timezone.now() + timedelta(hours=1)
    assert not Ticket.objects.filter(status__in=["open", "in_progress"], sla_due_at__lt=soon).exists()
    assert not Ticket.objects.exclude(sla_breached_at=None).exists()


def test_the_demo_shows_every_status():
    call_command("seed_demo")

    assert set(Ticket.objects.values_list("status", flat=True)) == {
        "open",
        "in_progress",
        "waiting",
        "resolved",
        "closed",
    }


def test_the_times_of_a_demo_ticket_agree_with_its_history():
    call_command("seed_demo")

    for ticket in Ticket.objects.all():
        moments = [event.created_at for event in ticket.events.all()]
        resolved = [
            event.created_at for event in ticket.events.all() if event.payload.get("new_status") == Status.RESOLVED
        ]
        comments = set(ticket.comments.values_list("created_at", flat=True))
        assert moments == sorted(set(moments))
        assert (ticket.created_at, ticket.updated_at) == (moments[0], moments[-1])
        assert ticket.resolved_at == (resolved[0] if resolved else None)
        assert comments <= set(moments)
        assert ticket.resolved_at is None or ticket.resolved_at < ticket.sla_due_at


def test_the_webhook_follows_the_address_of_the_site(settings):
    call_command("seed_demo")
    settings.STEGA_BASE_URL = "http://127.0.0.1:8123"

    call_command("seed_demo")

    product = Product.objects.get(slug="demo-shop")
    assert product.slack_webhook_url == "http://127.0.0.1:8123/dev/inbox/slack/"


def test_a_webhook_of_ones_own_is_kept():
    call_command("seed_demo")
    Product.objects.filter(slug="demo-shop").update(slack_webhook_url="https://hooks.example.com/1")

    call_command("seed_demo")

    assert Product.objects.get(slug="demo-shop").slack_webhook_url == "https://hooks.example.com/1"


def test_there_is_no_demo_in_production(settings):
    settings.DEBUG = False

    with pytest.raises(CommandError, match="STEGA_DEBUG=1"):
        call_command("seed_demo")

    assert not User.objects.exists()


def test_in_production_a_check_names_who_can_still_sign_in_with_a_public_password(settings):
    call_command("seed_demo")
    settings.DEBUG = False
    User.objects.filter(username="agent").update(is_active=False)
    changed = User.objects.get(username="customer")
    changed.set_password("another")
    changed.save()

    [warning] = demo_stays_at_home(None, databases=["default"])

    assert warning.id == "tickets.W001"
    assert "can sign in: admin." in warning.msg


@pytest.mark.parametrize(("debug", "databases"), [(True, ["default"]), (False, []), (False, ["jobs"])])
def test_a_developers_demo_and_a_check_without_the_database_say_nothing(settings, debug, databases):
    call_command("seed_demo")
    settings.DEBUG = debug

    assert demo_stays_at_home(None, databases=databases) == []

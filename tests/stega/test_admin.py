"""The admin: every page of every app opens, from whichever database it reads."""

import threading
import uuid

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db import connections
from django.forms.models import BaseModelForm
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from stega import outbox
from stega.models import OutboxEntry
from tests.factories import PASSWORD, make_ticket
from tickets.models import Product

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"])

MINUTES = dict.fromkeys(["sla_critical_minutes", "sla_high_minutes", "sla_medium_minutes", "sla_low_minutes"], 60)
PRODUCT = {"name": "Shop", "slug": "shop", "is_active": "on", **MINUTES}
USER = {
    **{"username": "new", "display_name": "New", "email": "new@example.com", "role": "customer"},
    **{"usable_password": "true", "password1": PASSWORD, "password2": PASSWORD},
}
MODELS = [model for model in admin.site._registry if model._meta.app_label != "auth"]


@pytest.fixture
def entry():
    return OutboxEntry.objects.create(key=uuid.uuid4(), task="send_welcome_notification", args=[1])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_every_list_opens(as_user, admin, customer, product, entry, model):
    make_ticket(customer, product)

    response = as_user(admin).get(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"))

    assert response.status_code == 200


@pytest.mark.parametrize("state", ["open", "done", "let_be", "failed", "nonsense", ""])
def test_the_outbox_is_filtered_by_state(as_user, admin, entry, state):
    response = as_user(admin).get(reverse("admin:stega_outboxentry_changelist"), {"state": state})

    assert response.status_code == 200


def test_tasks_and_schedules_are_shown_by_the_console_alone():
    assert [model for model in MODELS if model._meta.app_label == "django_q"] == []


def test_trying_again_leaves_a_done_entry_alone(as_user, admin, entry):
    OutboxEntry.objects.update(done_at=timezone.now())

    OutboxEntry.objects.reopen(OutboxEntry.objects.values("pk"))

    assert outbox.perform(str(entry.key)) == {"skipped": "done or let be before"}


def test_nobody_tries_an_entry_again_without_a_record_of_it(as_user, admin, entry):
    """That is the console's: see tests/operations/console/operating."""
    OutboxEntry.objects.update(failed_at=timezone.now())

    as_user(admin).post(
        reverse("admin:stega_outboxentry_changelist"), {"action": "try_again", "_selected_action": [entry.pk]}
    )

    entry.refresh_from_db()
    assert entry.failed_at


@pytest.fixture
def lose_the_race(monkeypatch):
    """Let another person make something right after the next look of a form at what there is."""
    look = BaseModelForm._post_clean

    def lose_the_race(model, **fields):
        def make():
            model.objects.create(**fields)
            connections.close_all()

        def look_and_be_late(form):
            look(form)
            monkeypatch.setattr(BaseModelForm, "_post_clean", look)
            other = threading.Thread(target=make)
            other.start()
            other.join(20)

        monkeypatch.setattr(BaseModelForm, "_post_clean", look_and_be_late)

    return lose_the_race


@pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)
@pytest.mark.parametrize(
    ("page", "model", "taken", "data", "said"),
    [
        ("tickets/product", Product, {"name": "SHOP", "slug": "other"}, PRODUCT, "with this name exists"),
        ("tickets/product", Product, {"name": "Other", "slug": "shop"}, PRODUCT, "with this Slug already exists"),
        (
            "accounts/user",
            User,
            {"username": "new", "email": "other@example.com"},
            USER,
            "that username already exists",
        ),
        ("auth/group", Group, {"name": "Night"}, {"name": "Night"}, "with this Name already exists"),
    ],
)
def test_who_loses_a_race_for_a_name_is_told_that_it_is_taken(
    as_user, admin, lose_the_race, page, model, taken, data, said
):
    browser = as_user(admin)
    lose_the_race(model, **taken)

    response = browser.post(f"/admin/{page}/add/", data)

    assert (response.status_code, model.objects.filter(**taken).count()) == (200, 1)
    assert said in response.content.decode()

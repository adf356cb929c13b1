import uuid
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts import tasks
from stega.pgque.publishing import event_key
from tests.support.event_log import published_by

pytestmark = pytest.mark.django_db

KEY = uuid.UUID("00000000-0000-0000-0000-000000000001")


@pytest.fixture
def published(monkeypatch):
    return published_by(tasks, monkeypatch)


def test_the_welcome_is_published_under_the_key_of_its_entry(published, customer):
    result = tasks.send_welcome_notification(customer.pk, event_key=KEY)

    payload = {"user_id": customer.pk, "email": "customer@example.com", "display_name": "Customer"}
    assert result == {"notified": "customer@example.com"}
    assert published == [("ticket.welcome", payload, KEY)]


def test_a_welcome_asked_for_by_hand_has_the_same_key_each_time(published, customer):
    tasks.send_welcome_notification(customer.pk)

    assert published[0][2] == event_key("ticket.welcome", customer.pk)


def test_a_user_who_is_gone_is_skipped(published):
    assert tasks.send_welcome_notification(4711) == {"skipped": "user not found"}
    assert published == []


def test_sessions_that_are_over_are_deleted():
    for name, hours in {"over": -1, "open": 1}.items():
        Session.objects.create(session_key=name, session_data="", expire_date=timezone.now() + timedelta(hours=hours))

    assert tasks.prune_sessions() == {"pruned": 1}
    assert [session.session_key for session in Session.objects.all()] == ["open"]

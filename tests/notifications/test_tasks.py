import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from notifications.models import Delivery, State
from notifications.notice import Channel
from notifications.tasks import prune_ledger

pytestmark = pytest.mark.django_db


def delivery(state, *, days):
    return Delivery.objects.create(
        event_key=uuid.uuid4(),
        event_type="ticket.welcome",
        channel=Channel.EMAIL,
        recipient="user:5",
        state=state,
        created_at=timezone.now() - timedelta(days=days),
    )


@pytest.mark.parametrize("state", [State.SENT, State.FAILED, State.SKIPPED, State.GIVEN_UP])
def test_what_is_over_for_90_days_goes(state):
    delivery(state, days=91)
    kept = delivery(state, days=89)

    assert prune_ledger()["pruned"] == 1
    assert list(Delivery.objects.all()) == [kept]


@pytest.mark.parametrize("state", [State.PENDING, State.SENDING])
def test_what_is_still_to_be_told_stays(state):
    kept = delivery(state, days=3)

    assert prune_ledger(days=1) == {"closed": 0, "pruned": 0}
    assert Delivery.objects.get(pk=kept.pk).state == state


@pytest.mark.parametrize("state", [State.PENDING, State.SENDING])
def test_a_row_whose_event_ended_elsewhere_says_so(state):
    lost = delivery(state, days=5)

    prune_ledger()

    lost.refresh_from_db()
    assert (lost.state, lost.reason) == (State.GIVEN_UP, "Its event comes no more")


@pytest.mark.parametrize("state", [State.SENT, State.PENDING])
def test_the_clock_of_the_process_closes_and_deletes_nothing(state, monkeypatch):
    kept = delivery(state, days=1)
    now = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: now + timedelta(days=1000))

    assert prune_ledger() == {"closed": 0, "pruned": 0}
    assert Delivery.objects.get(pk=kept.pk).state == state

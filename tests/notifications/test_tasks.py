import uuid
from datetime import timedelta
from itertools import count
from types import SimpleNamespace

import pytest
from django.utils import timezone

from notifications.models import Delivery, State
from notifications.notice import Channel
from notifications.tasks import prune_ledger
from stega.pgque import client
from tests.support.event_log import tick

pytestmark = pytest.mark.django_db(databases=["default", "events"])


def delivery(state, *, days, key=None, recipient="user:5", **fields):
    return Delivery.objects.create(
        event_key=key or uuid.uuid4(),
        event_type="ticket.welcome",
        channel=Channel.EMAIL,
        recipient=recipient,
        **fields,
        state=state,
        created_at=timezone.now() - timedelta(days=days),
    )


@pytest.mark.parametrize("state", [State.SENT, State.FAILED, State.SKIPPED])
def test_what_is_over_for_90_days_goes(state):
    delivery(state, days=91)
    kept = delivery(state, days=89)

    assert prune_ledger()["pruned"] == 1
    assert list(Delivery.objects.all()) == [kept]


@pytest.fixture
def burying(queue):
    """The consumer of a queue whose next event fails; with `seconds` it comes again, without it is a dead letter."""
    client.subscribe(queue, "keeper")

    def bury(key, *, seconds=None):
        client.insert_event(queue, "ticket.welcome", {}, str(key))
        tick(queue)
        batch = client.next_batch(queue, "keeper")
        (event,) = client.batch_events(batch, 10)
        if seconds is None:
            client.event_dead(batch, event, "It failed")
        else:
            client.event_retry(batch, event.id, seconds)
        client.ack(batch)

    return bury


@pytest.mark.django_db(databases=["default", "events"], transaction=True)
@pytest.mark.parametrize("seconds", [None, 600])
def test_who_was_told_of_an_event_that_may_come_again_is_remembered(burying, seconds):
    kept, gone = delivery(State.SENT, days=400), delivery(State.SENT, days=400)
    burying(kept.event_key, seconds=seconds)

    assert prune_ledger()["pruned"] == 1
    assert list(Delivery.objects.all()) == [kept]
    assert gone != kept


@pytest.mark.parametrize(
    "other",
    [
        {"state": State.GIVEN_UP, "days": 91},
        {"state": State.GIVEN_UP, "days": 364},
        {"state": State.SENT, "days": 1},
        {"state": State.PENDING, "days": 1},
        {"state": State.SENT, "days": 91, "claimed_at": timezone.now()},
    ],
)
def test_the_rows_of_an_event_stay_together(other):
    told = delivery(State.SENT, days=370)
    delivery(key=told.event_key, recipient="user:6", **other)

    assert prune_ledger()["pruned"] == 0


def test_who_was_given_up_is_forgotten_after_a_year():
    delivery(State.GIVEN_UP, days=366)

    assert prune_ledger()["pruned"] == 1


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


def test_more_than_a_piece_goes_in_one_run_past_what_stays(monkeypatch):
    monkeypatch.setattr("stega.database.pruning.PIECE", 2)
    kept = [delivery(State.SENT, days=400 - number) for number in range(3)]
    for number in range(4):
        delivery(State.SENT, days=200 - number)
        delivery(State.PENDING, days=100 - number)
    monkeypatch.setattr("stega.pgque.oversight.keys_that_may_come_again", lambda: {each.event_key for each in kept})

    assert prune_ledger() == {"closed": 4, "pruned": 4}
    assert set(Delivery.objects.exclude(state=State.GIVEN_UP)) == set(kept)


def test_closing_and_deleting_share_the_time_of_one_run(monkeypatch, settings):
    settings.TASK_STEP_SECONDS = 25
    monkeypatch.setattr("stega.database.pruning.PIECE", 1)
    monkeypatch.setattr("stega.database.pruning.time", SimpleNamespace(monotonic=count(0, 10).__next__))
    for number in range(5):
        delivery(State.SENT, days=200 - number)
        delivery(State.PENDING, days=100 - number)

    assert prune_ledger() == {"closed": 3, "pruned": 1}

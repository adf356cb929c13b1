"""operations/console/tiles.py: what the figures of the overview say of facts."""

from dataclasses import replace

import pytest
from django.utils.translation import override

from operations.console.tiles import tiles
from operations.facts.ledger import Outcome, Waiting
from tests.operations.facts_of import (
    ACTIONS,
    HOUR,
    LEDGER,
    NOW,
    OUTBOX,
    QUEUE,
    QUEUES,
    SECOND,
    TICKERS,
    WORKER,
    facts,
)

NOBODY = replace(TICKERS, leader=None)
HANGING = replace(TICKERS, leader=replace(TICKERS.leader, silent_for=60 * SECOND))
HIDDEN = replace(TICKERS, is_visible=False, leader=None)


def lag_of(tickers, **queue):
    """The tile, with 7 events after the newest tick and 3 before it."""
    queue = replace(QUEUE, events_after_tick=7, **queue)
    reader = replace(WORKER, pending=3, unticked=7, lag=2 * SECOND)
    told = facts(tickers=tickers, queues=replace(QUEUES, queues=(queue,), consumers=(reader,)))
    return next(tile for tile in tiles(told) if tile.label == "Lag")


def test_events_that_are_not_ticked_are_behind_too():
    lag = lag_of(TICKERS, ticker_lag=3 * SECOND)

    assert (lag.figure, lag.more, lag.tone) == ("2.0 s", "10 events behind", "")


@pytest.mark.parametrize("tickers", [NOBODY, HANGING])
def test_events_that_nobody_ticks_wait_since_the_last_tick(tickers):
    lag = lag_of(tickers, ticker_lag=30 * SECOND)

    assert (lag.figure, lag.more, lag.tone) == ("30 s", "10 events behind · no ticks", "bad")


def test_behind_a_pooler_the_time_since_the_last_tick_tells_whether_a_ticker_works():
    dead, alive = lag_of(HIDDEN, ticker_lag=HOUR), lag_of(HIDDEN, ticker_lag=SECOND)

    assert (dead.figure, dead.tone, alive.figure, alive.tone) == ("1 h", "bad", "2.0 s", "")


def test_a_queue_that_is_ticked_from_outside_needs_no_ticker():
    assert lag_of(NOBODY, ticker_lag=HOUR, is_paused=True).tone == ""


def test_a_ticker_that_never_ticked_a_queue_does_not_break_the_figure():
    assert lag_of(NOBODY, ticker_lag=None).figure == "2.0 s"


def test_an_idle_queue_waits_for_nothing():
    told = facts(tickers=NOBODY, queues=replace(QUEUES, at=NOW, queues=(replace(QUEUE, ticker_lag=HOUR),)))

    assert next(tile for tile in tiles(told) if tile.label == "Lag").figure == "0.00 s"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, ("1 abandonada", "1 falhou, 1 espera", "1 de reserva")),
        (2, ("2 abandonadas", "2 falharam, 2 esperam", "2 de")),
    ],
)
def test_one_of_a_thing_is_told_in_the_singular(number, words):
    told = facts(
        outbox=replace(OUTBOX, given_up=number),
        ledger=replace(
            LEDGER, outcomes=(Outcome("email", "failed", number),), waiting=(Waiting("email", number, SECOND),)
        ),
        tickers=replace(TICKERS, standbys=number),
    )

    with override("pt-br"):
        mores = " ".join(tile.more for tile in tiles(told))

    assert [word for word in words if word not in mores] == []


@pytest.mark.parametrize(
    ("still", "more", "tone"), [(None, "", ""), (10 * SECOND, "", ""), (HOUR, "one still for 1 h", "bad")]
)
def test_an_action_that_stands_still_asks_for_somebody(still, more, tone):
    told = facts(actions=replace(ACTIONS, open=3, longest_still=still))

    tile = next(tile for tile in tiles(told) if tile.label == "Actions under way")

    assert (tile.figure, tile.more, tile.tone) == ("3", more, tone)

"""stega/pgque/touching.py: signs of life while a batch is held, and not for ever."""

from datetime import timedelta

import pytest

from stega.pgque import client
from stega.pgque.touching import Toucher


@pytest.fixture
def touches(monkeypatch):
    touches = []
    monkeypatch.setattr(client, "touch_subconsumer", lambda *names: touches.append(names))
    return touches


@pytest.fixture
def now():
    return [100.0]


@pytest.fixture
def toucher(now):
    return Toucher("queue", "group", "member", timedelta(seconds=60), 600.0, clock=lambda: now[0])


def test_a_member_without_a_batch_is_not_touched(toucher, touches):
    toucher.beat()
    toucher.moved()
    toucher.rest()
    toucher.beat()

    assert touches == []


def test_a_member_with_a_batch_is_touched_at_each_beat(toucher, touches):
    toucher.moved()
    toucher.beat()
    toucher.beat()

    assert touches == [("queue", "group", "member")] * 2


def test_the_beats_come_more_than_three_times_per_dead_interval(toucher):
    assert toucher.every < 60 / 3


def test_a_member_stuck_in_one_message_falls_silent_and_says_so_once(toucher, touches, now, caplog):
    toucher.moved()
    now[0] += 601

    toucher.beat()
    toucher.beat()

    assert touches == []
    assert len(caplog.records) == 1


def test_a_member_that_moves_again_is_touched_again(toucher, touches, now):
    toucher.moved()
    now[0] += 601
    toucher.beat()

    toucher.moved()
    toucher.beat()

    assert len(touches) == 1

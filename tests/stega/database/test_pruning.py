"""stega/database/pruning.py: what is old goes, however much it is."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from operations.models import Sample
from stega.database import pruning

pytestmark = pytest.mark.django_db


@pytest.fixture
def old(monkeypatch):
    """Seven samples of three moments, among a young one; two are a piece."""
    monkeypatch.setattr(pruning, "PIECE", 2)
    now = timezone.now()
    for number in range(8):
        Sample.objects.create(at=now - timedelta(days=number // 3 if number else -1), series=f"{number}", value=1)
    return Sample.objects.filter(at__lte=now)


def series(rows):
    return [each.series for each in rows.order_by("at", "pk")]


def test_all_that_is_old_goes_piece_by_piece(old):
    assert pruning.delete(old, "at") == 7
    assert series(Sample.objects.all()) == ["0"]


def test_the_oldest_go_first_when_the_time_is_over(old, settings):
    settings.TASK_STEP_SECONDS = 0

    assert pruning.delete(old, "at") == 2
    assert series(old) == ["3", "4", "5", "1", "2"]


def test_each_row_comes_once_though_nothing_is_done_to_it(old):
    pieces = [[row.series for row in piece] for piece in pruning.pieces(old, "at", "series", until=pruning.deadline())]

    assert pieces == [["6", "7"], ["3", "4"], ["5", "1"], ["2"]]


def test_a_row_that_is_no_longer_old_when_its_turn_comes_stays(old, monkeypatch):
    found = list(old)
    monkeypatch.setattr(pruning, "pieces", lambda rows, by, until: [found])
    Sample.objects.filter(series="6").update(at=timezone.now() + timedelta(days=1))

    assert pruning.delete(old, "at") == 6


@pytest.mark.django_db(transaction=True)
def test_pieces_that_are_done_stay_done_when_a_later_one_fails(old, monkeypatch):
    pieces = pruning.pieces

    def failing(rows, by, until):
        yield next(pieces(rows, by, until=until))
        raise OperationalError

    monkeypatch.setattr(pruning, "pieces", failing)
    with pytest.raises(OperationalError):
        pruning.delete(old, "at")

    assert old.count() == 5

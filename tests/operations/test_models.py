"""operations/models.py: the record is append-only in the database itself; a minute is sampled once."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import override

from accounts.roles import Role
from operations.models import FAILED_AGAIN, NOT_TAKEN, WAITS_AGAIN, Kind, OperatorAction, Sample
from operations.performing import ALL_DONE, FAILS_STILL, LEFT_TO_SWEEP, SENT_AGAIN
from tests.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def action():
    operator = make_user("operator", Role.ADMIN)
    return OperatorAction.objects.create(
        kind=Kind.REPLAY_LETTER, actor=operator, target={"id": "1"}, count=1, reason="It works again"
    )


def test_an_action_cannot_be_deleted(action):
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        OperatorAction.objects.all().delete()


@pytest.mark.parametrize(
    "change",
    [{"reason": "Another one"}, {"count": 2}, {"target": {"id": "2"}}, {"kind": Kind.PURGE_LETTER}, {"up_to": 9}],
    ids=str,
)
def test_what_was_asked_for_cannot_be_changed(action, change):
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        OperatorAction.objects.update(**change)


def test_a_finished_action_cannot_be_changed(action):
    OperatorAction.objects.update(finished_at=timezone.now(), touched=1)

    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        OperatorAction.objects.update(touched=2)


def test_actions_are_numbered_without_gaps_though_some_are_refused(action):
    again = {"kind": action.kind, "actor": action.actor, "count": 1, "reason": "Again"}
    for _ in range(3):
        with pytest.raises(IntegrityError), transaction.atomic():
            OperatorAction.objects.create(**again, target=action.target)

    other = OperatorAction.objects.create(**again, target={"id": "2"})

    assert other.pk == action.pk + 1


def test_the_sequence_that_a_former_version_numbers_by_is_ahead_of_what_is_taken(action):
    for number in range(2, 5):
        OperatorAction.objects.create(
            kind=action.kind, actor=action.actor, target={"id": str(number)}, count=1, reason="Again"
        )

    with connection.cursor() as cursor:
        cursor.execute("select nextval(pg_get_serial_sequence('operations_operatoraction', 'id'))")
        (following,) = cursor.fetchone()

    assert following > OperatorAction.objects.latest("pk").pk


def test_a_sequence_that_stayed_behind_is_moved_along(action):
    with connection.cursor() as cursor:
        cursor.execute("select setval(pg_get_serial_sequence('operations_operatoraction', 'id'), 1)")
    for number in range(2, 5):
        OperatorAction(
            pk=action.pk + number, kind=action.kind, actor=action.actor, target={"id": str(number)}, count=1, reason="x"
        ).save(force_insert=True)

    last = OperatorAction.objects.create(kind=action.kind, actor=action.actor, target={}, count=1, reason="Again")

    with connection.cursor() as cursor:
        cursor.execute("select last_value from operations_operatoraction_id_seq")
        assert cursor.fetchone() == (last.pk,)


@pytest.mark.parametrize(
    ("kind", "outcome", "told"),
    [
        (Kind.REPLAY_GROUP, "", "sent"),
        (Kind.REPLAY_GROUP, NOT_TAKEN, "sent, none handled"),
        (Kind.REPLAY_GROUP, FAILED_AGAIN, "sent, none handled"),
        (Kind.REPLAY_GROUP, WAITS_AGAIN, "sent, none handled"),
        (Kind.REPLAY_GROUP, FAILS_STILL, "sent"),
        (Kind.REPLAY_LETTER, SENT_AGAIN, "sent"),
        (Kind.RETRY_ENTRIES, LEFT_TO_SWEEP, "handed over"),
        (Kind.PURGE_GROUP, ALL_DONE, "done"),
    ],
)
def test_what_is_sent_is_not_counted_as_done(kind, outcome, told):
    action = OperatorAction(kind=kind, outcome=outcome, touched=1)

    assert action.rows_text == f"1 {told}"


@pytest.mark.parametrize(("touched", "told"), [(1, "1 enviada"), (2, "2 enviadas")])
def test_one_row_is_told_in_the_singular_under_a_heading_of_all(touched, told):
    action = OperatorAction(kind=Kind.REPLAY_GROUP, touched=touched)

    with override("pt-br"):
        assert (action.rows_text, action.rows_heading) == (told, "Linhas enviadas")


@pytest.mark.parametrize("statement", ["truncate operations_operatoraction", "truncate accounts_user cascade"])
def test_the_record_cannot_be_emptied(action, statement):
    with connection.cursor() as cursor:
        cursor.execute("set constraints all immediate")
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            cursor.execute(statement)

    assert OperatorAction.objects.get() == action


def test_one_action_on_a_target_is_open_at_a_time(action):
    with pytest.raises(IntegrityError), transaction.atomic():
        OperatorAction.objects.create(
            kind=action.kind, actor=action.actor, target=action.target, count=1, reason="Once more"
        )


def test_a_minute_is_sampled_once():
    at = datetime(2026, 3, 1, 9, tzinfo=UTC)

    written = [Sample.objects.take(at, {"a": 1.0, "b": 2.0}), Sample.objects.take(at, {"a": 5.0, "c": 3.0})]

    assert written == [2, 1]
    assert Sample.objects.get(series="a").value == 1.0


def test_samples_are_found_by_their_series_and_age():
    at = datetime(2026, 3, 1, 9, tzinfo=UTC)
    Sample.objects.take(at, {"lag:x": 1.0, "rate:x": 1.0})
    Sample.objects.take(at + timedelta(minutes=1), {"lag:x": 2.0, "rate:x": 1.0})

    found = Sample.objects.since(at + timedelta(seconds=1), ["lag:"])

    assert [(each.series, each.value) for each in found] == [("lag:x", 2.0)]

"""stega/outbox.py: what is promised in a transaction happens after it, and only then."""

import uuid

import pytest
from django.db import transaction
from django_q.models import OrmQ

from stega import outbox
from stega.models import OutboxEntry
from tests.stega.outbox.entries import queued_keys
from tests.support.together import at_once

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


def test_enqueue_outside_a_transaction_is_refused():
    with pytest.raises(transaction.TransactionManagementError):
        outbox.enqueue("note", 1)


def test_a_task_that_settings_do_not_name_is_refused():
    with pytest.raises(ValueError, match="'no_such_task'"), transaction.atomic():
        outbox.enqueue("no_such_task")


def test_after_the_commit_the_entry_is_with_django_q_and_marked():
    key = uuid.uuid4()

    with transaction.atomic():
        assert outbox.enqueue("note", 1, "two", key=key)
        assert OrmQ.objects.count() == 0

    assert queued_keys() == {str(key)}
    assert OutboxEntry.objects.get(key=key).relayed_at


def test_a_rollback_leaves_neither_entry_nor_task():
    def change_and_fail():
        with transaction.atomic():
            outbox.enqueue("note", 1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change_and_fail()

    assert not OutboxEntry.objects.exists()
    assert not OrmQ.objects.exists()


def test_the_same_key_is_promised_once():
    key = uuid.uuid4()
    with transaction.atomic():
        outbox.enqueue("note", 1, key=key)

    with transaction.atomic():
        again = outbox.enqueue("note", 1, key=key)

    assert not again
    assert OrmQ.objects.count() == 1


def test_two_transactions_promise_the_same_key_at_once_and_one_of_them_wrote_it():
    key = uuid.uuid4()

    def promise(number):
        with transaction.atomic():
            return outbox.enqueue("note", number, key=key)

    answers = at_once(promise, range(2))

    assert sorted(answers) == [False, True]


def test_many_entries_go_in_one_statement(django_assert_num_queries):
    rows = [(uuid.uuid4(), (number,)) for number in range(50)]

    with transaction.atomic(), django_assert_num_queries(1):
        new = outbox.enqueue_many("note", rows)

    assert new == 50
    assert OutboxEntry.objects.count() == 50

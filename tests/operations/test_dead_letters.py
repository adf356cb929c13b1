"""operations/dead_letters.py: groups of one cause, on an engine with the index and on one without."""

import pytest
from django.db import connections

from operations import dead_letters
from operations.dead_letters import GroupKey, groups
from stega.pgque import client, oversight
from tests.support.letters import bury

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)


@pytest.fixture(params=[pytest.param(True, id="with the index", marks=pytest.mark.engine), False])
def engine(request, monkeypatch):
    monkeypatch.setattr(oversight, "has_cause_index", lambda: request.param)


def causes(queue):
    return {each.key.cause: each.count for each in groups().groups if each.key.queue == queue}


@pytest.fixture
def consumers(queue):
    for name in ("one", "two"):
        client.subscribe(queue, name)


def test_letters_that_differ_in_numbers_addresses_and_keys_are_of_one_cause(engine, queue, consumers):
    for reason in (
        "mail 1 to user:%s <u%s@example.com> failed",
        "mail 22 to user:%s <other@example.org> failed",
        "event 7f9c24e8-3b12-4fef-91e0-cd6a1f1ba3b0 is odd",
        "event 00000000-0000-4000-8000-00000000000a is odd",
        "something else",
    ):
        bury(queue, "one", reason, count=3)

    assert causes(queue) == {"mail # to user:# # failed": 6, "event # is odd": 6, "something else": 3}


def test_groups_are_apart_by_consumer_and_type(engine, queue, consumers):
    bury(queue, "one", "odd", event_type="a")
    bury(queue, "one", "odd", event_type="b")
    bury(queue, "two", "odd", event_type="b")

    keys = {each.key for each in groups().groups if each.key.queue == queue}

    assert keys == {GroupKey(queue, *rest, "odd") for rest in (("one", "a"), ("one", "b"), ("two", "b"))}


def test_a_letter_without_a_reason_or_type_is_in_a_group_too(engine, queue, consumers):
    bury(queue, "one", "")
    with connections["events"].cursor() as cursor:
        cursor.execute("update pgque.dead_letter set dl_reason = null, ev_type = null")

    (group,) = [each for each in groups().groups if each.key.queue == queue]

    assert (group.key.type, group.key.cause, group.reason) == ("", "", "")
    assert len(dead_letters.letters(group.key, dead_letters.NEWEST, 10)) == 1


def test_a_group_tells_its_newest_reason(engine, queue, consumers):
    bury(queue, "one", "user %s is odd", count=3)

    (group,) = [each for each in groups().groups if each.key.queue == queue]

    assert group.reason == "user 3 is odd"


@pytest.mark.engine
def test_every_group_is_on_one_page(queue, consumers, monkeypatch):
    monkeypatch.setattr(dead_letters, "GROUPS_SHOWN", 2)
    wanted = {f"cause {letter}" for letter in "abcde"}
    for cause in wanted:
        bury(queue, "one", cause, count=2)

    found, place = [], dead_letters.FIRST
    while place:
        page = groups(place)
        found += [each.key.cause for each in page.groups if each.key.queue == queue]
        place = page.next

    assert len(found) == 5
    assert set(found) == wanted


def test_without_the_index_it_is_said_that_only_the_newest_are_grouped(queue, consumers, monkeypatch):
    with connections["events"].cursor() as cursor:
        cursor.execute("drop index if exists pgque.dl_cause_idx")
    monkeypatch.setattr(dead_letters, "NEWEST_GROUPED", 3)
    bury(queue, "one", "odd", count=5)

    found = groups()

    assert not found.is_complete
    assert sum(each.count for each in found.groups) == 3


def test_the_letters_of_a_group_come_newest_first(queue, consumers):
    ids = bury(queue, "one", "user %s is odd", count=5)
    key = GroupKey(queue, "one", "ticket.welcome", "user # is odd")

    page = dead_letters.letters(key, ids[3], 2)

    assert [letter.id for letter in page] == [ids[2], ids[1]]
    assert page[0].deliveries == 4


def test_a_letter_that_is_gone_is_none(queue):
    assert dead_letters.opened(2**62) is None

import uuid

import pytest
from django.db import transaction
from django.urls import reverse

from operations import actions
from operations.models import Kind, OperatorAction
from operations.performing import perform
from stega import outbox
from stega.models import OutboxEntry
from stega.pgque import client
from stega.pgque.publishing import event_key
from tests.operations.console.operating.asking import REASON, address, answer_to, confirm, each_kind
from tests.support.event_log import tick
from tests.support.letters import bury
from tests.support.together import at_once


@each_kind
def test_a_confirmed_action_is_recorded_with_its_outbox_entry(browser, operator, targets, kind):
    target, count = targets[kind]

    response = confirm(browser, address(kind, target))

    action = OperatorAction.objects.get()
    assert response["Location"] == reverse("operations:action", args=[action.pk])
    assert (action.kind, action.actor, action.count, action.reason) == (kind, operator, count, REASON)
    assert action.target.items() >= {name: str(value) for name, value in target.items()}.items()
    assert OutboxEntry.objects.filter(task="perform_operator_action", args=[action.pk]).count() == 1


@pytest.fixture
def parts(group):
    """What tells an operator what a bare number or key stands for."""
    letter, entry = group, {"task": "send_welcome_notification"}
    kinds = {Kind.REPLAY_LETTER: letter, Kind.PURGE_LETTER: letter, Kind.RETRY_ENTRY: entry, Kind.SETTLE_ENTRY: entry}
    return kinds.items()


def test_what_a_number_or_key_stands_for_is_asked_and_recorded(browser, targets, parts):
    for kind, wanted in parts:
        where = address(kind, targets[kind][0])

        asked = browser.get(where).content.decode().replace("<wbr>", "")
        confirm(browser, where)
        action = OperatorAction.objects.get(kind=kind)
        listed = browser.get(reverse("operations:actions")).content.decode()

        assert [part for part in wanted.values() if f"<dd>{part}</dd>" not in asked] == []
        assert action.target.items() >= wanted.items()
        assert [part for part in wanted.values() if part not in listed] == []


def test_the_record_of_a_letter_tells_nothing_of_its_payload(browser, targets):
    confirm(browser, address(Kind.PURGE_LETTER, targets[Kind.PURGE_LETTER][0]))

    assert set(OperatorAction.objects.get().target) == {"queue", "consumer", "type", "cause", "id"}


def test_a_letter_with_the_longest_of_names_can_be_acted_on(browser, queue, letters):
    endless = "".join(map(chr, range(0x1F300, 0x1F300 + 900)))
    (letter,) = bury(queue, "notification_worker", endless, event_type=endless)

    confirm(browser, address(Kind.PURGE_LETTER, {"id": letter}))

    assert OperatorAction.objects.get().target["type"].startswith(endless[:100])


def test_a_record_that_has_only_a_number_is_shown_with_it(browser, operator):
    """As the record of one letter was once written."""
    action = OperatorAction.objects.create(
        kind=Kind.PURGE_LETTER, actor=operator, target={"id": "4711"}, count=1, reason=REASON
    )

    pages = [action.get_absolute_url(), reverse("operations:actions")]

    assert ["4711" in browser.get(page).content.decode() for page in pages] == [True, True]


@each_kind
def test_an_answer_sent_twice_asks_once(browser, targets, kind):
    target, _count = targets[kind]
    where = address(kind, target)
    answer = answer_to(browser, where)

    answers = [browser.post(where, answer) for _number in range(2)]

    assert OperatorAction.objects.count() == 1
    assert answers[0]["Location"] == answers[1]["Location"]


def test_the_answer_to_another_question_is_not_taken_for_the_first_ones(browser, targets):
    """Which sends the same key: a form may be filled in by a program, or by somebody who means harm."""
    key = uuid.uuid4()
    (letter, _), (schedule, _) = targets[Kind.PURGE_LETTER], targets[Kind.RUN_SCHEDULE]
    other_schedule = {"name": "outbox pruning"}
    asked = [(Kind.PURGE_LETTER, letter), (Kind.RUN_SCHEDULE, schedule), (Kind.RUN_SCHEDULE, other_schedule)]

    for kind, target in asked * 2:
        browser.post(address(kind, target), {"reason": REASON, "key": key})

    recorded = list(OperatorAction.objects.order_by("pk").values_list("kind", "target"))
    wanted = [(kind, {name: str(value) for name, value in target.items()}) for kind, target in asked]
    assert [kind for kind, _target in recorded] == [kind for kind, _target in wanted]
    assert all(there.items() >= target.items() for (_, there), (_, target) in zip(recorded, wanted, strict=True))


@each_kind
def test_the_same_asked_by_two_operators_is_done_once(browser, as_user, admin, targets, kind):
    target, _count = targets[kind]

    confirm(browser, address(kind, target))
    second = confirm(as_user(admin), address(kind, target))

    assert second["Location"] == OperatorAction.objects.get().get_absolute_url()


def test_a_number_that_a_process_of_a_former_version_takes_meanwhile_is_not_taken_for_the_same(
    browser, operator, targets, monkeypatch
):
    """Such a process numbers by the sequence and waits for nobody."""

    def take(number):
        monkeypatch.undo()
        other = OperatorAction(pk=number, kind=Kind.PURGE_LETTER, actor=operator, target={}, count=1, reason=REASON)
        at_once(lambda action: action.save(force_insert=True), [other])

    where = address(Kind.RUN_SCHEDULE, targets[Kind.RUN_SCHEDULE][0])
    answer = answer_to(browser, where)
    monkeypatch.setattr("operations.models._move_sequence_to", take)

    response = browser.post(where, answer)

    first, second = OperatorAction.objects.order_by("pk")
    assert (first.kind, second.kind, second.pk) == (Kind.PURGE_LETTER, Kind.RUN_SCHEDULE, first.pk + 1)
    assert response["Location"] == second.get_absolute_url()


def test_two_replays_of_one_letter_at_the_same_moment_make_one_event(as_user, operator, admin, queue, letters):
    """ST-132."""
    where = address(Kind.REPLAY_LETTER, {"id": letters["bad"][0]})
    asked = [(browser, answer_to(browser, where)) for browser in map(as_user, (operator, admin))]

    at_once(lambda each: each[0].post(where, each[1]), asked)
    for action in OperatorAction.objects.all():
        perform(action.pk)

    assert OperatorAction.objects.count() == 1
    assert OperatorAction.objects.get().touched == 1
    tick(queue)
    batch = client.next_batch(queue, "notification_worker")
    assert len(list(client.batch_events(batch, 10))) == 1


def test_an_action_cannot_take_the_place_of_a_promise_to_come(browser, targets):
    key = event_key("ticket.comment_added", 7)
    target, _count = targets[Kind.RUN_SCHEDULE]
    browser.post(address(Kind.RUN_SCHEDULE, target), {"reason": REASON, "key": key})

    with transaction.atomic(using="default"):
        is_promised = outbox.enqueue("send_welcome_notification", 1, key=key)

    assert OperatorAction.objects.exists()
    assert is_promised


def test_an_action_that_the_outbox_does_not_take_is_not_recorded(browser, targets):
    target, _count = targets[Kind.RUN_SCHEDULE]
    key = uuid.uuid4()
    own_key = actions.key_of(Kind.RUN_SCHEDULE, target, key)
    OutboxEntry.objects.create(key=OperatorAction(key=own_key).promise_key(), task="x")

    response = browser.post(address(Kind.RUN_SCHEDULE, target), {"reason": REASON, "key": key}, follow=True)

    assert "Nothing has been done. Ask again." in response.content.decode()
    assert not OperatorAction.objects.exists()


SPELLINGS = {
    "without dashes": lambda key: key.hex,
    "upper case": lambda key: str(key).upper(),
    "braces": "{{{}}}".format,
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_key_is_one_target_however_it_is_spelt(browser, as_user, admin, targets, spelling):
    target, _count = targets[Kind.RETRY_ENTRY]
    spelt = {"key": SPELLINGS[spelling](target["key"])}
    asked = browser.get(address(Kind.RETRY_ENTRY, spelt))
    confirm(browser, address(Kind.RETRY_ENTRY, spelt))

    second = confirm(as_user(admin), address(Kind.RETRY_ENTRY, target))

    action = OperatorAction.objects.get()
    assert asked.status_code == 200
    assert action.target["key"] == str(target["key"])
    assert second["Location"] == action.get_absolute_url()

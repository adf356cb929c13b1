"""Every action: asked first, given a reason, recorded, done once, refused where there is nothing to do it to."""

import re
import uuid

import pytest
from django.db import connections, transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django_q.models import Schedule

from operations import actions
from operations.models import Kind, OperatorAction, State
from operations.performing import perform
from stega import outbox
from stega.models import OutboxEntry
from stega.pgque import client, oversight
from stega.pgque.publishing import event_key
from stega.tasks import schedules
from tests.support.event_log import tick
from tests.support.letters import bury
from tests.support.together import at_once

REASON = "The mailbox works again"


@pytest.fixture
def browser(as_user, operator):
    return as_user(operator)


def address(kind, target):
    return f"{reverse('operations:act', args=[kind])}?{urlencode(target)}"


def done_entries():
    return f"{reverse('operations:outbox')}?state=done"


def answer_to(browser, where, reason=REASON):
    """What a person answers to the question on the page: its hidden parts and a reason."""
    hidden = re.findall(r'name="(key|up_to)" value="([^"]*)"', browser.get(where).content.decode())
    return {**dict(hidden), "reason": reason}


def confirm(browser, where, reason=REASON):
    return browser.post(where, answer_to(browser, where, reason))


@pytest.fixture
def targets(queue, letters, group):
    """What each kind of action can be done to now, and how many rows that is."""
    schedules.install()
    entries = [
        OutboxEntry.objects.create(
            key=uuid.uuid4(), task="send_welcome_notification", args=[1], failed_at=timezone.now()
        )
        for _number in range(2)
    ]
    return {
        Kind.REPLAY_LETTER: ({"id": letters["bad"][0]}, 1),
        Kind.PURGE_LETTER: ({"id": letters["bad"][0]}, 1),
        Kind.REPLAY_GROUP: (group, 150),
        Kind.PURGE_GROUP: (group, 150),
        Kind.RETRY_ENTRY: ({"key": entries[0].key}, 1),
        Kind.RETRY_ENTRIES: ({}, 2),
        Kind.SETTLE_ENTRY: ({"key": entries[0].key}, 1),
        Kind.SETTLE_ENTRIES: ({}, 2),
        Kind.RUN_SCHEDULE: ({"name": "outbox sweep"}, 1),
    }


@pytest.fixture
def take_away(targets):
    """Make the target of an action vanish."""

    def take_away(kind):
        with connections["events"].cursor() as cursor:
            cursor.execute("delete from pgque.dead_letter")
        OutboxEntry.objects.update(failed_at=None)
        Schedule.objects.all().delete()

    return take_away


each_kind = pytest.mark.parametrize("kind", list(Kind))


@each_kind
def test_the_question_tells_how_many_rows_it_is_about(browser, targets, kind):
    target, count = targets[kind]

    text = browser.get(address(kind, target)).content.decode()

    assert f"<strong>{count}</strong>" in text
    assert not OperatorAction.objects.exists()


@each_kind
def test_no_two_things_of_the_question_have_the_same_name(browser, targets, kind):
    text = browser.get(address(kind, targets[kind][0])).content.decode()

    names = re.findall(r"<(?:dt|label)[^>]*>([^<]+)<", text)
    assert "Reason" in names
    assert [name for name in names if names.count(name) > 1] == []


@each_kind
def test_a_confirmed_action_is_recorded_with_its_outbox_entry(browser, operator, targets, kind):
    target, count = targets[kind]

    response = confirm(browser, address(kind, target))

    action = OperatorAction.objects.get()
    assert response["Location"] == reverse("operations:action", args=[action.pk])
    assert (action.kind, action.actor, action.count, action.reason) == (kind, operator, count, REASON)
    assert action.target == {name: str(value) for name, value in target.items()}
    assert OutboxEntry.objects.filter(task="perform_operator_action", args=[action.pk]).count() == 1


@each_kind
def test_a_recorded_action_is_done_by_its_task(browser, targets, kind):
    target, count = targets[kind]
    confirm(browser, address(kind, target))

    outbox.perform(str(OutboxEntry.objects.get(task="perform_operator_action").key))

    action = OperatorAction.objects.get()
    waits = kind == Kind.REPLAY_GROUP  # nobody has handled the first letter
    assert action.state == (State.WAITING if waits else State.DONE)
    assert action.touched == (1 if waits else count)


SAYS = {
    Kind.REPLAY_LETTER: ("handed over", "Sent again, for the consumer to handle: 1"),
    Kind.PURGE_LETTER: ("done", "All done"),
    Kind.PURGE_GROUP: ("done", "All done"),
    Kind.RETRY_ENTRY: ("handed over", "Handed over to the sweep, which relays them each minute: 1"),
    Kind.RETRY_ENTRIES: ("handed over", "Handed over to the sweep, which relays them each minute: 2"),
    Kind.SETTLE_ENTRY: ("done", "All done"),
    Kind.SETTLE_ENTRIES: ("done", "All done"),
    Kind.RUN_SCHEDULE: ("handed over", "Due now: a cluster of task workers runs it at its next look at the schedules"),
}
"""State and outcome; what others have still to do is not told as done."""


@pytest.mark.parametrize("kind", SAYS)
def test_what_came_of_an_action_is_told_as_what_it_is(browser, admin, as_user, targets, kind):
    target, _count = targets[kind]
    confirm(browser, address(kind, target))

    perform(OperatorAction.objects.get().pk)

    action = OperatorAction.objects.get()
    page = browser.get(action.get_absolute_url()).content.decode()
    of_admin = as_user(admin).get(reverse("admin:operations_operatoraction_change", args=[action.pk])).content.decode()
    state, outcome = SAYS[kind]
    assert [f">{state}<" in page, f">{outcome}<" in page] == [True, True]
    assert [state in of_admin, outcome in of_admin] == [True, True]
    assert f">{state}<" in browser.get(reverse("operations:actions")).content.decode()


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

    recorded = OperatorAction.objects.order_by("pk").values_list("kind", "target")
    assert list(recorded) == [(kind, {name: str(value) for name, value in target.items()}) for kind, target in asked]


@each_kind
def test_the_same_asked_by_two_operators_is_done_once(browser, as_user, admin, targets, kind):
    target, _count = targets[kind]

    confirm(browser, address(kind, target))
    second = confirm(as_user(admin), address(kind, target))

    assert second["Location"] == OperatorAction.objects.get().get_absolute_url()


@each_kind
def test_a_target_that_is_gone_is_said_to_be_gone(browser, targets, take_away, kind):
    target, _count = targets[kind]
    take_away(kind)

    asked = browser.get(address(kind, target))
    answered = browser.post(address(kind, target), {"reason": REASON, "key": uuid.uuid4()})

    assert (asked.status_code, answered.status_code) == (410, 410)
    assert "There is nothing left to do this to" in answered.content.decode()
    assert not OperatorAction.objects.exists()


@each_kind
def test_a_target_that_goes_before_the_task_comes_is_left_at_nothing(browser, targets, take_away, kind):
    target, _count = targets[kind]
    confirm(browser, address(kind, target))
    take_away(kind)

    perform(OperatorAction.objects.get().pk)

    action = OperatorAction.objects.get()
    assert (action.state, action.touched) == (State.DONE, 0)
    assert action.outcome.startswith("Nothing was left to do")


@each_kind
def test_an_action_needs_a_reason(browser, targets, kind):
    target, _count = targets[kind]

    response = confirm(browser, address(kind, target), reason="  ")

    assert response.status_code == 200
    assert "This field is required." in response.content.decode()
    assert not OperatorAction.objects.exists()


@pytest.mark.parametrize("kind", [Kind.REPLAY_LETTER, Kind.PURGE_LETTER, Kind.REPLAY_GROUP, Kind.PURGE_GROUP])
def test_while_the_event_log_is_away_nothing_is_done_and_the_page_says_so(browser, targets, monkeypatch, kind):
    target, _count = targets[kind]
    connections["events"].close()
    monkeypatch.setitem(connections["events"].settings_dict, "HOST", "/nowhere")

    response = browser.post(address(kind, target), {"reason": REASON, "key": uuid.uuid4()})

    monkeypatch.undo()
    assert response.status_code == 503
    assert "The database “events” cannot be reached." in response.content.decode()
    assert "Nothing has been done." in response.content.decode()
    assert not OperatorAction.objects.exists()


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("replay_letter", {"id": "x"}),
        ("replay_letter", {}),
        ("replay_group", {"queue": "q"}),
        ("retry_entry", {"key": "no key"}),
        ("retry_entry", {"key": "\x00"}),
        ("settle_entry", {"key": "no key"}),
        ("replay_letter", {"id": "-1"}),
        ("replay_letter", {"id": "1_2"}),
        ("replay_letter", {"id": " 12 "}),
        ("replay_letter", {"id": "\u0661\u0662"}),
        ("purge_letter", {"id": str(2**63)}),
        ("purge_letter", {"id": "9" * 5000}),
        ("purge_group", {"queue": "q", "consumer": "c", "type": "\x00", "cause": ""}),
        ("run_schedule", {"name": "\x00"}),
        ("launch_rocket", {}),
    ],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_an_address_that_names_nothing_is_not_found(browser, kind, target, method):
    response = getattr(browser, method)(address(kind, target), {} if method == "get" else {"reason": REASON})

    assert response.status_code == 404


@pytest.mark.parametrize(
    ("kind", "page"), [("run_schedule", "tasks"), ("retry_entry", "outbox"), ("launch_rocket", "actions")]
)
def test_an_address_that_names_nothing_leads_to_the_page_where_one_begins(browser, settings, kind, page):
    settings.DEBUG = True

    text = browser.get(address(kind, {})).content.decode()

    assert "Begin with a button on the page of what you want to change." in text
    assert f'<a class="button" href="{reverse(f"operations:{page}")}">' in text


def test_letters_that_come_after_the_question_are_left_alone(browser, queue, targets, group):
    where = address(Kind.PURGE_GROUP, group)
    answer = answer_to(browser, where)
    bury(queue, "notification_worker", group["cause"], count=7)

    browser.post(where, answer)
    perform(OperatorAction.objects.get().pk)

    assert OperatorAction.objects.get().touched == 150
    assert oversight.count_dead_letters(group, 2**62, 1000) == 7


def test_an_entry_that_was_let_be_is_shown_with_its_error_and_can_be_acted_on_no_more(browser, targets):
    target, _count = targets[Kind.SETTLE_ENTRY]
    OutboxEntry.objects.filter(key=target["key"]).update(last_error="The person is gone")
    confirm(browser, address(Kind.SETTLE_ENTRY, target))
    perform(OperatorAction.objects.get().pk)

    pages = [browser.get(reverse("operations:event", args=[target["key"]])), browser.get(done_entries())]
    questions = [browser.get(address(kind, target)) for kind in (Kind.SETTLE_ENTRY, Kind.RETRY_ENTRY)]

    for page in pages:
        text = page.content.decode()
        assert "let be</span>" in text
        assert "The person is gone" in text
        assert f"?key={target['key']}" not in text
    assert [question.status_code for question in questions] == [410, 410]


def test_entries_given_up_after_the_question_are_not_let_be(browser, targets):
    where = address(Kind.SETTLE_ENTRIES, {})
    answer = answer_to(browser, where)
    late = OutboxEntry.objects.create(key=uuid.uuid4(), task="x", failed_at=timezone.now())

    browser.post(where, answer)
    perform(OperatorAction.objects.get().pk)

    assert OperatorAction.objects.get().touched == 2
    assert list(OutboxEntry.objects.given_up()) == [late]


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


def test_the_progress_is_shown_and_refreshed_until_the_action_is_over(browser, targets):
    target, _count = targets[Kind.PURGE_GROUP]
    confirm(browser, address(Kind.PURGE_GROUP, target))
    action = OperatorAction.objects.get()

    before = browser.get(action.get_absolute_url()).content.decode()
    perform(action.pk)
    after = browser.get(action.get_absolute_url()).content.decode()

    assert "hx-get" in before
    assert "hx-get" not in after
    assert "All done" in after


def test_an_action_that_is_not_in_the_record_is_not_found(browser):
    assert browser.get(reverse("operations:action", args=[987_654])).status_code == 404


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
    assert action.target == {"key": str(target["key"])}
    assert second["Location"] == action.get_absolute_url()


@each_kind
@pytest.mark.parametrize("target", [{}, {"id": "-1", "key": "{x}", "name": 7}])
def test_a_record_of_an_odd_target_is_shown(browser, operator, kind, target):
    action = OperatorAction.objects.create(kind=kind, actor=operator, target=target, count=1, reason=REASON)

    shown = browser.get(action.get_absolute_url())
    listed = browser.get(reverse("operations:actions"))

    assert (shown.status_code, listed.status_code) == (200, 200)

import uuid

import pytest
from django.db import connections
from django.urls import reverse
from django.utils import timezone

from operations.facts import tasks
from operations.models import Kind, OperatorAction, State
from operations.performing import perform
from stega import outbox
from stega.models import OutboxEntry
from stega.pgque import oversight
from tests.operations.console.operating.asking import REASON, address, answer_to, confirm, each_kind
from tests.support.letters import bury


def done_entries():
    return f"{reverse('operations:outbox')}?state=done"


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
def test_a_target_that_goes_before_the_task_comes_is_left_at_nothing(browser, targets, take_away, kind):
    target, _count = targets[kind]
    confirm(browser, address(kind, target))
    take_away(kind)

    perform(OperatorAction.objects.get().pk)

    action = OperatorAction.objects.get()
    assert (action.state, action.touched) == (State.DONE, 0)
    assert action.outcome.startswith("Nothing was left to do")


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


@pytest.fixture
def cluster():
    """A session on `jobs`, as the main process of a cluster has one."""
    given = connections["jobs"].get_connection_params()
    session = connections["jobs"].get_new_connection({**given, "application_name": "qcluster"})
    yield session
    session.close()


A_TASK = "A task works on it."
NO_CLUSTER = "No cluster of task workers runs: when one does, a task works on it."


def word_on(browser, targets):
    """What the page of an action that has just been asked for says of who works on it."""
    confirm(browser, address(Kind.PURGE_GROUP, targets[Kind.PURGE_GROUP][0]))
    text = browser.get(OperatorAction.objects.get().get_absolute_url()).content.decode()
    return [sentence for sentence in (A_TASK, NO_CLUSTER) if sentence in text]


def test_an_action_that_no_cluster_can_work_on_says_so(browser, targets):
    assert word_on(browser, targets) == [NO_CLUSTER]


def test_an_action_that_a_cluster_can_work_on_says_so(browser, targets, cluster):
    assert word_on(browser, targets) == [A_TASK]


def test_where_clusters_cannot_be_seen_a_task_is_taken_to_work(browser, targets, monkeypatch):
    monkeypatch.setattr(tasks, "is_pooled", lambda alias: True)

    assert word_on(browser, targets) == [A_TASK]


def test_an_action_that_is_not_in_the_record_is_not_found(browser):
    assert browser.get(reverse("operations:action", args=[987_654])).status_code == 404


@each_kind
@pytest.mark.parametrize("target", [{}, {"id": "-1", "key": "{x}", "name": 7}])
def test_a_record_of_an_odd_target_is_shown(browser, operator, kind, target):
    action = OperatorAction.objects.create(kind=kind, actor=operator, target=target, count=1, reason=REASON)

    shown = browser.get(action.get_absolute_url())
    listed = browser.get(reverse("operations:actions"))

    assert (shown.status_code, listed.status_code) == (200, 200)

"""Every page renders, in both languages, with and without rows, and with a database away."""

import time
import uuid

import pytest
from django.db import connections
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from accounts.roles import Role
from notifications.models import Delivery, State
from notifications.notice import Channel
from operations.console.addresses import problem_address
from operations.models import COUNT_LIMIT, NOT_TAKEN, Kind, OperatorAction, Sample
from operations.problems.words import Name
from stega.models import OutboxEntry
from stega.pgque import client, oversight
from stega.pgque.catalogue import SLA_BREACH_DISPATCHER
from stega.tasks import schedules
from tests.factories import make_ticket
from tests.operations.console.lists import PAGES
from tests.support.console import row_of_each_kind
from tests.support.event_log import tick
from tests.support.letters import bury
from tickets import actions as ticket_actions
from tickets.models import TicketEvent


@pytest.fixture
def language(viewer, request):
    viewer.language = request.param
    viewer.save()
    return request.param


in_both_languages = pytest.mark.parametrize("language", ["en", "pt-br"], indirect=True)


@pytest.fixture
def page(as_user, viewer):
    """The text of a page as the viewer sees it."""
    browser = as_user(viewer)

    def open_page(name, *args, status=200, **query):
        address = reverse(f"operations:{name}", args=args)
        response = browser.get(f"{address}?{urlencode(query)}")
        assert response.status_code == status
        return response.content.decode().replace("<wbr>", "")

    return open_page


@pytest.fixture
def away(monkeypatch):
    """Make a database unreachable for this test."""

    def go_away(alias):
        connections[alias].close()
        monkeypatch.setitem(connections[alias].settings_dict, "HOST", "/nowhere")
        return alias

    yield go_away
    for connection in connections.all():
        connection.close()


@in_both_languages
@pytest.mark.parametrize("name", PAGES)
def test_every_page_renders_without_rows(page, queue, language, name):
    assert f'<html lang="{language}">' in page(name)


@in_both_languages
@pytest.mark.parametrize("name", PAGES)
def test_every_page_renders_with_rows(page, queue, language, everything, name):
    assert f'<html lang="{language}">' in page(name)


@pytest.fixture
def everything(queue, letters, customer, product, operator):
    row_of_each_kind(queue, customer, product, operator)


@in_both_languages
def test_five_hundred_dead_letters_of_three_causes_are_three_groups(page, queue, letters, language):
    text = page("dead_letters")

    assert text.count('class="figure big"') == 3
    assert all(f">{count}</td>" in text for count in (300, 150, 50))


@in_both_languages
def test_a_group_shows_its_letters_newest_first_a_page_at_a_time(page, letters, group, language):
    first = page("dead_letter_group", **group)
    second = page("dead_letter_group", **group, before=letters["bad"][-50])

    newest, oldest = letters["bad"][-1], letters["bad"][0]
    assert reverse("operations:dead_letter", args=[newest]) in first
    assert reverse("operations:dead_letter", args=[oldest]) not in first
    assert reverse("operations:dead_letter", args=[newest]) not in second


@in_both_languages
def test_a_letter_tells_its_reason(page, letters, language):
    reason = {"en": "ticket.welcome lacks email", "pt-br": "falta email em ticket.welcome"}[language]
    assert reason in page("dead_letter", letters["bad"][0])


@in_both_languages
def test_a_letter_that_is_gone_says_so(page, letters, language):
    oversight.purge_dead_letter(letters["bad"][0])

    text = page("dead_letter", letters["bad"][0], status=410)

    assert {"en": "is gone", "pt-br": "não existe mais"}[language] in text


@in_both_languages
def test_the_way_of_an_event_goes_from_the_outbox_to_the_dead_letter(page, queue, language):
    key = uuid.uuid4()
    OutboxEntry.objects.create(key=key, task="send_welcome_notification", args=[1])
    client.subscribe(queue, "notification_worker")
    client.insert_event(queue, "ticket.welcome", {}, str(key))
    tick(queue)
    (letter,) = bury(queue, "notification_worker", "no such mailbox", key=str(key))
    Delivery.objects.create(
        event_key=key, event_type="ticket.welcome", channel=Channel.SLACK, recipient="product:3", state=State.SENT
    )

    text = page("event", key)

    assert "send_welcome_notification" in text
    assert "notification_worker" in text
    assert reverse("operations:dead_letter", args=[letter]) in text
    assert "product:3" in text


@in_both_languages
def test_a_stopped_replay_says_apart_what_was_sent_and_what_was_handled(page, operator, language):
    action = OperatorAction.objects.create(
        kind=Kind.REPLAY_GROUP, actor=operator, count=25, reason="why", state="stopped", touched=1, outcome=NOT_TAKEN
    )

    of_one, of_all = {
        "en": ("sent, none handled", "Rows sent, none handled"),
        "pt-br": ("enviada, não tratada", "Linhas enviadas, nenhuma tratada"),
    }[language]

    assert [of_one in page("actions"), of_all in page("action", action.pk)] == [True, True]


@pytest.mark.parametrize(("count", "told"), [(COUNT_LIMIT - 1, "4,999<"), (COUNT_LIMIT, "5,000+<")])
def test_an_action_on_more_rows_than_are_counted_says_that_there_are_more(page, operator, count, told):
    action = OperatorAction.objects.create(kind=Kind.RETRY_ENTRIES, actor=operator, count=count, reason="why")

    assert [told in page("actions"), told in page("action", action.pk)] == [True, True]


def test_where_an_event_was_looked_for_is_one_sentence(page, queue):
    entry = OutboxEntry.objects.create(key=uuid.uuid4(), task="send_welcome_notification", args=[1])

    assert "What was sent in the last 5 min was looked through." in page("event", entry.key)


@in_both_languages
def test_a_quiet_consumer_and_a_quiet_queue_are_said_to_be_idle(page, queue, language):
    client.subscribe_subconsumer(queue, "workers", "one")
    tick(queue)

    words = {"en": ("idle", "idle"), "pt-br": ("ocioso", "ociosa")}[language]

    assert f"<small>{words[0]}</small>" in page("consumers")
    assert [f"<small>{words[1]}</small>" in page(name) for name in ("queues", "tickers")] == [True, True]


GONE = {"en": "gone", "pt-br": "encerrado"}


@in_both_languages
@pytest.mark.parametrize(("waiting", "badge"), [(0, "badge"), (1, "badge warning")])
def test_a_member_whose_process_is_gone_is_called_so(page, queue, language, waiting, badge):
    client.subscribe_subconsumer(queue, SLA_BREACH_DISPATCHER, "one")
    with connections["events"].cursor() as cursor:
        cursor.execute("update pgque.subscription set sub_active = now() - interval '43 s'")
    for _event in range(waiting):
        client.insert_event(queue, "ticket.sla_breached", {}, str(uuid.uuid4()))

    text = page("consumers")

    assert f'43 s <span class="{badge}">{GONE[language]}</span>' in text


@in_both_languages
def test_a_key_that_nobody_knows_is_said_to_be_unknown(page, queue, language):
    page("event", uuid.uuid4(), status=404)


@in_both_languages
def test_a_ticket_leads_to_its_events_and_back(page, customer, agent, product, language):
    ticket = make_ticket(customer, product)
    ticket_actions.take(agent, ticket.pk)
    ticket_actions.comment(agent, ticket.pk, "Looking at it.")
    entries = list(OutboxEntry.objects.filter(task__startswith="publish_ticket"))

    text = page("ticket", ticket.pk)

    assert TicketEvent.objects.filter(ticket=ticket).count() == len(entries) == 2
    assert all(reverse("operations:event", args=[entry.key]) in text for entry in entries)
    assert ticket.get_absolute_url() in text


def test_whom_the_help_desk_does_not_show_a_ticket_is_not_led_to_it(page, viewer, customer, product):
    ticket = make_ticket(customer, product)
    viewer.role = Role.CUSTOMER
    viewer.save()

    assert ticket.get_absolute_url() not in page("ticket", ticket.pk)


@pytest.mark.parametrize("language", ["pt-br"], indirect=True)
def test_a_schedule_bears_a_name_of_its_readers_language(page, queue, language, operator):
    schedules.install()
    target = {"name": "outbox sweep"}
    OperatorAction.objects.create(kind=Kind.RUN_SCHEDULE, actor=operator, target=target, count=1, reason="why")

    assert all("varredura da caixa de saída" in page(name) for name in ("tasks", "actions"))


def test_a_queue_that_nobody_ticks_is_not_said_to_run(page, queue):
    client.insert_event(queue, "ticket.welcome", {}, str(uuid.uuid4()))

    text = page("queues")

    assert '<span class="badge critical">no ticks</span>' in text
    assert '<span class="badge good">' not in text


def test_a_queue_with_a_ticker_runs(page, queue):
    with connections["events"].cursor() as cursor:
        cursor.execute("select pg_advisory_lock(hashtext('stega'), hashtext('ticker'))")
        cursor.execute("select pg_advisory_lock(hashtext('stega term'), 1)")
    tick(queue)

    text = page("queues")

    connections["events"].close()
    assert '<span class="badge good">runs</span>' in text


@in_both_languages
def test_a_problem_bears_the_name_of_its_heading_in_the_handbook(page, queue, language):
    text = page("overview")

    assert f'<a href="{reverse("operations:tickers")}">ticker_dead</a>' in text


@pytest.mark.parametrize("name", Name)
def test_a_problem_leads_to_a_page_that_there_is(as_user, viewer, name):
    address = problem_address(name)

    assert not address or as_user(viewer).get(address).status_code == 200


def test_new_dead_letters_lead_to_their_page():
    assert problem_address(Name.POISON_MESSAGE) == reverse("operations:dead_letters")


def test_a_ticket_that_is_not_there_is_not_found(page):
    page("ticket", 987_654, status=404)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("  7f9c24e8-3b12-4fef-91e0-cd6a1f1ba3b0 ", "/events/7f9c24e8-3b12-4fef-91e0-cd6a1f1ba3b0/"),
        ("#12", "/tickets/12/"),
        ("12", "/tickets/12/"),
        ("user:5", "/ledger/?q=user%3A5"),
        ("customer@example.com", "/ledger/?q=customer%40example.com"),
        ("99999999999999999999", "/ledger/?q=99999999999999999999"),
    ],
)
def test_the_search_goes_where_the_query_is_known(as_user, viewer, query, place):
    response = as_user(viewer).get(reverse("operations:find"), {"q": query})

    assert response["Location"].endswith(place)


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("retries", {"after": "nonsense"}),
        ("dead_letters", {"after": '["x"]'}),
        ("dead_letters", {"after": "[1, 2, 3, 4, 5]"}),
        ("dead_letters", {"after": "[" * 20_000}),
        ("dead_letters", {"after": '[Infinity, 2, "3", "4"]'}),
        ("dead_letters", {"after": '[1, 2, "\\ud800", "4"]'}),
        ("dead_letters", {"after": '[1, 2, "3", "\\u0000"]'}),
        ("retries", {"after": f"2030-01-01T00:00Z_{'9' * 5000}_1"}),
        ("outbox", {"state": "done", "before": f"2030-01-01T00:00Z_{'9' * 5000}"}),
        ("outbox", {"state": "all", "before": "9" * 5000}),
        ("ledger", {"q": "\x00", "before": f"2030-01-01T00:00Z_{'9' * 5000}"}),
        ("ledger", {"q": "\x00@example.com"}),
        ("actions", {"before": "9" * 5000}),
        ("outbox", {"state": "nonsense", "before": "x_y"}),
        ("outbox", {"state": "all", "before": "9" * 30}),
        ("outbox", {"q": "no key"}),
        ("ledger", {"q": "é", "state": "nonsense", "before": "2026-13-45_1"}),
        ("ledger", {"q": "user:99999999999999999999999"}),
        ("actions", {"before": "9" * 30}),
        ("overview", {"span": "nonsense"}),
    ],
)
def test_a_nonsensical_address_shows_a_page_all_the_same(page, queue, name, query):
    page(name, **query)


def test_a_group_without_a_name_leads_back_to_all_groups(as_user, viewer):
    response = as_user(viewer).get(reverse("operations:dead_letter_group"), {"queue": "q"})

    assert response["Location"] == reverse("operations:dead_letters")


@pytest.mark.parametrize("name", ["queues", "consumers", "tickers", "retries", "dead_letters"])
def test_a_page_of_the_event_log_says_that_the_database_is_away(page, away, settings, name):
    settings.FACTS_SECONDS = 0.9
    away("events")
    began = time.monotonic()

    text = page(name)

    assert "The database “events” cannot be reached." in text
    assert time.monotonic() - began < 2


def test_what_other_databases_know_is_shown_while_one_is_away(page, away):
    OutboxEntry.objects.create(key=uuid.uuid4(), task="send_welcome_notification", args=[1])
    away("events")

    text = page("overview")

    assert "The database “events” cannot be reached." in text
    assert "1 given up" not in text
    assert '<span class="tile-figure">1</span><span class="tile-more">oldest' in text


def test_the_way_of_an_event_is_shown_in_part_while_a_database_is_away(page, away):
    key = uuid.uuid4()
    OutboxEntry.objects.create(key=key, task="send_welcome_notification", args=[1])
    away("events")
    away("jobs")

    text = page("event", key)

    assert "send_welcome_notification" in text
    assert "The database “events” cannot be reached." in text
    assert "The database “jobs” cannot be reached." in text


def test_the_page_of_tasks_says_that_their_database_is_away(page, away):
    away("jobs")

    assert "The database “jobs” cannot be reached." in page("tasks")


def test_the_charts_show_the_samples_of_the_last_hour_and_day(page, queue):
    now = timezone.now().replace(second=0, microsecond=0)
    Sample.objects.take(now - timezone.timedelta(hours=5), {"deliveries:told": 7.0})
    Sample.objects.take(now, {"deliveries:told": 3.0})

    hour, day = page("overview", span="hour"), page("overview", span="day")

    assert hour.count("<svg") == day.count("<svg") == 1
    assert '<td class="figure">7</td>' in day
    assert '<td class="figure">7</td>' not in hour

"""stega/web/door.py: what a database that is away or hangs costs a request, and what people then read."""

import threading
import time

import pytest
from django.db import OperationalError, connections
from django.test import Client

from stega.database import patience
from stega.database.outages import is_outage
from stega.web.door import Hall
from tests.support import servers
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(databases=["default", "jobs", "events"], transaction=True)

PAGES = ["/", "/tickets/new/", "/admin/operations/", "/admin/operations/queues/", "/admin/", "/accounts/profile/"]


@pytest.fixture
def default_down():
    connections["default"].close()
    servers.app.stop()
    yield
    connections["default"].close()
    servers.app.start()


@pytest.fixture
def visitor(settings, admin):
    """Somebody with a session, to whom a fault is an answer and no exception."""
    visitor = Client(raise_request_exception=False)
    visitor.force_login(admin)
    return visitor


@pytest.fixture
def hanging_default():
    connections["default"].ensure_connection()
    with servers.hanging(servers.app):
        yield
    connections["default"].close()


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(("language", "words"), [("en", "cannot reach its database"), ("pt-br", "não consegue")])
def test_an_outage_is_a_plain_page_in_the_readers_language(visitor, settings, default_down, debug, language, words):
    settings.DEBUG = debug

    answers = {path: visitor.get(path, headers={"accept-language": language}) for path in PAGES}

    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(PAGES, 503)
    assert all(words in answer.content.decode() for answer in answers.values())
    assert all(answer["Retry-After"] for answer in answers.values())
    assert not any("OperationalError" in answer.content.decode() for answer in answers.values())


@pytest.mark.parametrize("path", ["/admin/operations/", "/admin/operations/queues/", "/admin/tickets/ticket/"])
@pytest.mark.parametrize("fault", ["default_down", "hanging_default"])
def test_operators_are_told_which_database_it_is(visitor, settings, request, fault, path):
    settings.STEGA_REQUEST_DATABASE_SECONDS = 0.3
    request.getfixturevalue(fault)

    answer = visitor.get(path)

    text = answer.content.decode()
    assert answer.status_code == 503
    assert "The database “default” cannot be reached, or did not answer in time." in text
    assert "DATABASE_URL" in text
    assert "not yours" not in text


def test_a_customer_is_not_told_of_our_databases(visitor, default_down):
    text = visitor.get("/tickets/").content.decode()

    assert "not yours" in text
    assert [word for word in ("default", "DATABASE_URL", "doctor") if word in text] == []


def test_a_fault_of_our_own_is_no_outage(visitor, settings, monkeypatch):
    monkeypatch.setattr("tickets.views.render", None)

    assert visitor.get("/tickets/").status_code == 500


def test_a_server_that_hangs_costs_no_more_than_the_patience_of_the_thread(hanging_default):
    begin = time.monotonic()

    with patience.limited_to(0.3):
        for _ in range(3):
            with pytest.raises(OperationalError) as failed, connections["default"].cursor() as cursor:
                cursor.execute("select 1")

    assert time.monotonic() - begin < 1
    assert is_outage(failed.value)


def test_what_a_thread_does_between_its_questions_costs_it_no_patience():
    begin = time.monotonic()

    with patience.limited_to(0.2):
        wait_until(lambda: time.monotonic() - begin > 0.3, timeout=5)
        with connections["default"].cursor() as cursor:
            cursor.execute("select 1")

        assert 0 < patience.left() < 0.2


def test_without_a_limit_nobody_is_hurried():
    with connections["default"].cursor() as cursor:
        cursor.execute("select pg_sleep(0.2)")

    assert patience.left() is None


def test_a_full_hall_waits_for_a_place_while_the_databases_answer():
    hall = Hall()
    hall.places = 1
    hall.enter()
    came = []
    late = threading.Thread(target=lambda: came.append(hall.enter()))

    late.start()
    hall.leave()
    late.join()

    assert came == [True]


def test_a_full_hall_lets_nobody_wait_when_all_inside_wait_in_vain(hanging_default):
    hall = Hall()
    hall.places = 1
    hall.enter()
    inside = threading.Thread(target=ask_for, args=[3])
    inside.start()

    begin = time.monotonic()
    may_enter = hall.enter()
    took = time.monotonic() - begin

    inside.join()
    assert (may_enter, took < 2) == (False, True)


def ask_for(seconds):
    with patience.limited_to(seconds):
        try:
            connections["default"].cursor().execute("select 1")
        except OperationalError:
            connections["default"].close()

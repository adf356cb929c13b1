"""A database that hangs, as a stopped server does: it takes connections and keeps them, and says nothing."""

import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError

import pytest
from django.db import connections

from stega.database import patience
from tests.support import processes, servers
from tests.support.sessions import Session
from tests.support.waiting import wait_until

LIMIT = 4
"""Seconds that a request waits."""
VISITORS = 12
SORRY = "A Stega não consegue acessar seu banco de dados"


@pytest.fixture
def address(env):
    process, address = processes.web(env | {"STEGA_REQUEST_DATABASE_SECONDS": str(LIMIT), "FACTS_SECONDS": "0.9"})
    with process:
        yield address


def get(url):
    """Status and text, and how long it took, of somebody with a session who reads Portuguese."""
    cookie = f"sessionid_{url.split(':')[2].split('/')[0]}={'a' * 32}"
    begin = time.monotonic()
    request = urllib.request.Request(url, headers={"Cookie": cookie, "Accept-Language": "pt-BR"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            status, text = response.status, response.read().decode()
    except HTTPError as error:
        with error:
            status, text = error.code, error.read().decode()
    return status, text, time.monotonic() - begin


def probe(address):
    return {path: get(address + path) for path in ("/livez", "/readyz", "/metrics")}


def test_no_session_of_the_web_waits_on_when_its_request_has_been_answered(address):
    get(f"{address}/")

    with Session(servers.app.url(connections["default"].settings_dict["NAME"])) as another:
        another.rows("lock table django_session")
        status, text, _ = get(f"{address}/")

        assert (status, SORRY in text) == (503, True)
        wait_until(lambda: not waiting_for(another), timeout=patience.GRACE_SECONDS + 2)
    assert get(f"{address}/")[0] == 200


def waiting_for(session):
    return session.rows("select pid from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))")


def test_default_hangs_and_visitors_get_a_plain_answer_while_probes_are_answered_at_once(address):
    with ThreadPoolExecutor(VISITORS) as visitors:
        warm = list(visitors.map(get, [f"{address}/"] * VISITORS))
        assert {status for status, _, _ in warm} == {200}

        with servers.hanging(servers.app):
            visits = [visitors.submit(get, f"{address}/") for _ in range(VISITORS)]
            rounds = [probe(address) for _ in range(3)]
            answers = [visit.result() for visit in visits]

        assert max(each["/livez"][2] for each in rounds) < 1
        assert {each["/livez"][0] for each in rounds} == {200}
        assert max(each["/readyz"][2] for each in rounds) < 2
        assert all(each["/readyz"][0] == 503 and '"default": "silent"' in each["/readyz"][1] for each in rounds)
        assert max(each["/metrics"][2] for each in rounds) < 3
        assert all('stega_database_up{alias="default"} 0.0' in each["/metrics"][1] for each in rounds)
        assert {status for status, _, _ in answers} == {503}
        assert all(SORRY in text for _, text, _ in answers)
        assert max(took for _, _, took in answers) < 2 * (LIMIT + 3)
        wait_until(lambda: get(f"{address}/")[0] == 200 and get(f"{address}/readyz")[0] == 200, timeout=10)

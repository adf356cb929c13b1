"""stega/processes/fingerprint.py: what processes must share, and what they say when they do not."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connections

from stega.models import SharedSetting, SharedSettingQuerySet
from stega.processes import fingerprint
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db


@pytest.fixture
def running():
    """A process with the settings of the tests has started."""
    fingerprint.compare("ticker")


def test_the_first_process_tells_its_settings_and_complains_of_nothing(caplog):
    fingerprint.compare("ticker")

    assert dict(SharedSetting.objects.values_list("name", "value")) == fingerprint.fingerprint()
    assert caplog.records == []


def test_a_process_that_agrees_writes_nothing(running, django_assert_num_queries):
    with django_assert_num_queries(1):
        fingerprint.compare("notification_worker")


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("PGQUE_MAX_RETRIES", "PGQUE_MAX_RETRIES", 7),
        ("TASK_MAX_ATTEMPTS", "TASK_MAX_ATTEMPTS", 9),
        ("PGQUE_QUEUE", "PGQUE_QUEUE", "other"),
        ("PGQUE_ENGINE", "PGQUE_ENGINE", "another"),
        ("STEGA_BASE_URL", "STEGA_BASE_URL", "https://other.example"),
        ("STEGA_TIME_ZONE", "TIME_ZONE", "America/Sao_Paulo"),
    ],
)
def test_a_process_that_differs_names_the_setting_both_values_and_the_other(
    running, settings, caplog, name, setting, value
):
    former = getattr(settings, setting)
    setattr(settings, setting, value)

    fingerprint.compare("notification_worker")

    [record] = caplog.records
    assert record.getMessage().startswith(f"{name} is {value} here, but {former} for ticker on ")


def test_an_upgrade_only_warns_and_the_new_version_is_what_the_next_is_compared_with(running, monkeypatch, caplog):
    monkeypatch.setattr(fingerprint, "_version", lambda: "9.9")

    fingerprint.compare("notification_worker")
    fingerprint.compare("sla_breach_worker")

    assert ["Stega's version is 9.9 here" in record.getMessage() for record in caplog.records] == [True]


def test_another_secret_key_is_refused_and_not_told(running, settings):
    settings.SECRET_KEY = "x" * 50

    with pytest.raises(ImproperlyConfigured, match="STEGA_SECRET_KEY is another than that of ticker"):
        fingerprint.compare("qcluster")

    assert SharedSetting.objects.get(name="STEGA_SECRET_KEY").told_by.startswith("ticker")


def test_a_new_secret_key_takes_over_beside_the_former_one(running, settings, caplog):
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "x" * 50

    fingerprint.compare("qcluster")

    assert [record.getMessage().startswith("STEGA_SECRET_KEY is new here") for record in caplog.records] == [True]


def test_after_a_lost_secret_key_everything_is_told_anew(running, settings, capsys):
    settings.SECRET_KEY = "x" * 50

    call_command("shared_settings", "--forget")
    fingerprint.compare("qcluster")

    assert "PGQUE_MAX_RETRIES" in capsys.readouterr().out
    assert SharedSetting.objects.get(name="STEGA_SECRET_KEY").told_by.startswith("qcluster")


def test_nobody_learns_a_secret_from_what_is_told(running, settings):
    told = " ".join(SharedSetting.objects.values_list("value", flat=True))

    assert settings.SECRET_KEY not in told


@pytest.mark.django_db(transaction=True)
def test_of_two_first_processes_that_start_at_once_with_different_secret_keys_one_is_refused(monkeypatch):
    """The second comes while the first has compared and has not told yet."""
    here, tell = fingerprint.fingerprint(), SharedSettingQuerySet.tell
    keys = {"ticker": "first", "qcluster": "second"}
    process = threading.local()

    def start(name):
        process.name = name
        try:
            fingerprint.compare(name)
        finally:
            connections["default"].close()

    def let_the_second_come(settings, values, told_by):
        if process.name == "ticker":
            second.append(pool.submit(start, "qcluster"))
            wait_until(lambda: second[0].done() or waits_for_a_lock(), timeout=10)
        tell(settings, values, told_by)

    monkeypatch.setattr(fingerprint, "fingerprint", lambda: here | {"STEGA_SECRET_KEY": keys[process.name]})
    monkeypatch.setattr(SharedSettingQuerySet, "tell", let_the_second_come)
    second = []
    with ThreadPoolExecutor(1) as pool:
        start("ticker")

    with pytest.raises(ImproperlyConfigured, match="STEGA_SECRET_KEY is another than that of ticker"):
        second[0].result()
    assert SharedSetting.objects.get(name="STEGA_SECRET_KEY").value == "first"


def waits_for_a_lock():
    with connections["default"].cursor() as cursor:
        cursor.execute("select exists (select from pg_locks where not granted)")
        return cursor.fetchone()[0]

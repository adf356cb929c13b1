"""stega/processes/startup.py: a command that cannot start says one line and exits with 1."""

import signal
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError

from stega.database.mismatch import OtherSchema
from stega.processes import startup
from tests.support.processes import ROOT

WORDS = 'connection to server at "127.0.0.1", port 9 failed: Connection refused'


def test_a_wrong_setting_is_one_line_and_exit_code_1(capsys):
    with pytest.raises(SystemExit) as end, startup.refusing_clearly():
        raise ImproperlyConfigured("DATABASE_URL is not a database URL.")

    assert end.value.code == 1
    assert capsys.readouterr().err == "stega: DATABASE_URL is not a database URL.\n"


def test_an_unreachable_database_is_named_with_its_variable(monkeypatch, capsys):
    monkeypatch.setattr(startup, "_try", {"default": "", "jobs": "too many clients", "events": WORDS}.get)

    with pytest.raises(SystemExit) as end, startup.refusing_clearly():
        raise OperationalError(WORDS.replace(" failed", "\n\tfailed"))

    said = capsys.readouterr().err
    assert end.value.code == 1
    assert said.count("\n") == 1
    assert "events database" in said
    assert "EVENTS_DATABASE_URL" in said


def test_a_database_of_another_version_is_told_with_its_remedy_alone(capsys):
    words = "the default database lacks migration stega.0004_x. Run: python manage.py migrate --database=default"

    with pytest.raises(SystemExit) as end, startup.refusing_clearly():
        raise OtherSchema(f"{words} (relation does not exist)")

    assert end.value.code == 1
    assert capsys.readouterr().err == f"stega: {words} (relation does not exist)\n"


def test_a_command_that_nobody_listens_to_ends_without_a_word():
    command = [sys.executable, "manage.py", "help"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()

        said = process.stderr.read()

    assert (process.returncode, said) == (128 + signal.SIGPIPE, "")


def test_any_other_error_is_left_alone():
    with pytest.raises(ZeroDivisionError), startup.refusing_clearly():
        raise ZeroDivisionError

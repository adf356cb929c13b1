"""A row that a database refused is quoted in no line, whoever tells that it was refused."""

import sys
import uuid

import pytest
from django.db import IntegrityError

from stega import outbox
from stega.processes import fingerprint
from stega.tasks import cluster
from stega.web import startup

ROW = "Failing row contains (72, hush)"


def refuse(*args, **kwargs):
    raise IntegrityError(ROW)


def test_a_fast_path_that_rests_says_why_without_the_row(monkeypatch, caplog):
    monkeypatch.setattr(outbox, "_rest_until", 0.0)
    monkeypatch.setattr(outbox, "_enqueue_tasks", refuse)

    outbox.relay_now("x", [uuid.uuid4()])

    assert "the sweep will relay: IntegrityError at tests/stega/test_refused_rows.py" in caplog.text
    assert "hush" not in caplog.text


def test_a_web_process_that_cannot_compare_its_settings_says_why_without_the_row(monkeypatch, caplog):
    monkeypatch.setattr(fingerprint, "compare", refuse)
    monkeypatch.setattr("stega.web.startup.connections.close_all", lambda: None)

    startup.share_settings()

    assert "Settings are not compared with those of other processes: IntegrityError at" in caplog.text
    assert "hush" not in caplog.text


def test_the_guard_of_a_cluster_has_its_last_words_told_as_any_process(monkeypatch):
    told = []
    monkeypatch.setattr(cluster, "Sentinel", refuse)
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: told.append(kind))

    with pytest.raises(SystemExit, match="1"):
        cluster._guard()

    assert told == [IntegrityError]

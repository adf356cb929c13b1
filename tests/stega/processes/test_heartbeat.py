"""stega/processes/heartbeat.py: who is well, who is ill, who is dead."""

import subprocess
import sys

import pytest

from stega.processes import heartbeat
from stega.processes.heartbeat import Heartbeat, check


@pytest.fixture(autouse=True)
def now(settings, tmp_path, monkeypatch):
    """The machine's clock, to be moved."""
    settings.STEGA_RUN_DIR = tmp_path / "run"
    settings.HEALTHY_SECONDS = 30.0
    now = [1000.0]
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def beating():
    beating = Heartbeat("ticker")
    beating.start()
    yield beating
    beating.end()


def test_a_command_that_does_not_run_is_not_well():
    assert check("ticker") == (False, "no ticker runs here")


def test_a_process_is_well_for_a_while_after_a_beat(beating, now):
    now[0] += 29
    beating.beat()
    now[0] += 29

    assert check("ticker")[0]


def test_a_process_without_a_good_step_is_not_well(beating, now):
    now[0] += 31

    assert check("ticker") == (False, f"ticker {beating.path.name[7:]}: no good step for more than 30 s")


def test_a_wait_that_was_announced_is_no_illness(beating, now):
    beating.beat(wait=600.0)
    now[0] += 620

    assert check("ticker")[0]


def test_the_dead_are_neither_well_nor_ill_and_are_cleared_away(tmp_path):
    dies = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text('99999999')"
    path = tmp_path / "run" / "ticker-1"
    path.parent.mkdir()
    subprocess.run([sys.executable, "-c", dies, str(path)], check=True)

    assert check("ticker") == (False, "no ticker runs here")
    assert not path.exists()


def test_a_process_that_ended_leaves_nothing(tmp_path):
    ended = Heartbeat("ticker")
    ended.start()

    ended.end()

    assert list((tmp_path / "run").iterdir()) == []


def test_a_folder_that_cannot_be_written_to_costs_the_process_nothing(settings, tmp_path, caplog):
    (tmp_path / "file").touch()
    settings.STEGA_RUN_DIR = tmp_path / "file" / "run"
    homeless = Heartbeat("ticker")

    homeless.start()
    homeless.beat()
    homeless.end()

    assert len(caplog.records) == 1

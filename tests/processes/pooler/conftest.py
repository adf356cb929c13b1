"""The processes of Stega behind a real PgBouncer: run by `make test-pooler` alone, for not every machine has it."""

from pathlib import Path

import pytest
from django.db import connections

from tests.support import pooler as support
from tests.support import servers

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path, config):
    """Not where `tests` is asked for; these tests want to be named."""
    named = (Path(config.invocation_params.dir, argument.split("::")[0]).resolve() for argument in config.args)
    return None if any(path.is_relative_to(HERE) for path in named) else True


def pytest_sessionstart():
    if support.program() is None:
        pytest.exit(support.MISSING, returncode=1)


@pytest.fixture
def pooler_settings():
    """What a test changes in the shipped configuration."""
    return {"default_pool_size": 2}


@pytest.fixture
def pooler(event_log, pooler_settings):
    with support.Pooler(**pooler_settings) as pooler:
        yield pooler


@pytest.fixture
def listening():
    """How the processes listen: past the pooler."""
    return {"EVENTS_LISTEN_DATABASE_URL": servers.events.url(str(connections["events"].settings_dict["NAME"]))}


@pytest.fixture
def env(env, pooler, listening):
    """All three databases are behind the pooler."""
    return {**env, **pooler.urls(), **listening}

"""A consumer of the test's queue, and what its handler saw."""

import pytest

from stega.pgque import catalogue, client
from stega.pgque.consumer import Consumer
from tests.stega.pgque.consumer.recording import Recorder


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def consumer(queue, recorder):
    client.subscribe(queue, catalogue.NOTIFICATION_WORKER)
    return Consumer(catalogue.NOTIFICATION_WORKER, {"ticket.welcome": recorder})

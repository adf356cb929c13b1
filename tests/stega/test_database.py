"""stega/database: which connections are kept."""

import pytest
from django.db import InternalError, close_old_connections, connections

from stega.models import OutboxEntry

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_session_that_began_in_a_read_only_period_is_made_anew_after_its_first_error():
    connection = connections["default"]
    with connection.cursor() as cursor:
        cursor.execute("set default_transaction_read_only = on")
    with pytest.raises(InternalError):
        OutboxEntry.objects.update(attempts=0)

    close_old_connections()

    assert OutboxEntry.objects.update(attempts=0) == 0


def test_a_connection_that_was_cut_is_not_usable():
    connection = connections["default"]
    connection.ensure_connection()
    connection.connection.close()

    is_usable = connection.is_usable()
    connection.close()

    assert not is_usable


def test_a_good_connection_is_kept():
    connection = connections["default"]
    connection.ensure_connection()
    session = connection.connection

    close_old_connections()

    assert connection.is_usable()
    assert connection.connection is session

"""The whole line behind a pooler, with two sessions for each database."""

import pytest

from tests.processes.test_story import (  # noqa: F401 - told again
    test_a_breached_sla_is_told_to_every_admin_by_mail_and_once_in_slack,
    test_the_first_sign_in_is_welcomed_once_and_the_second_not_at_all,
)


@pytest.fixture(params=["listening", "polling"])
def listening(request, listening):
    """Past the pooler, or not at all."""
    return listening if request.param == "listening" else {"EVENTS_POOLED": "1"}

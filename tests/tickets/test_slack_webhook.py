import pytest
from django.core.exceptions import ValidationError

from tickets.slack_webhook import masked, validate_slack_webhook_url


@pytest.mark.parametrize(
    ("url", "debug", "accepted"),
    [
        ("https://hooks.slack.com/services/T/B/x", False, True),
        ("https://[::1]/x", False, True),
        ("http://hooks.slack.com/services/T/B/x", True, False),
        ("http://127.0.0.1:8000/dev/inbox/slack/", True, True),
        ("http://localhost:8000/dev/inbox/slack/", True, True),
        ("http://127.0.0.1:8000/dev/inbox/slack/", False, False),
        ("https://user:password@hooks.example.com/", False, False),
        ("https://", False, False),
        ("https://[::1", False, False),
        ("https://a b/", False, False),
        ("https://host:port/", False, False),
        ("javascript:alert(1)", True, False),
        ("nonsense", True, False),
    ],
)
def test_which_addresses_may_be_a_slack_webhook(settings, url, debug, accepted):
    settings.DEBUG = debug
    try:
        validate_slack_webhook_url(url)
    except ValidationError:
        assert not accepted
    else:
        assert accepted


def test_a_masked_webhook_shows_the_host_alone():
    assert masked("https://hooks.slack.com/services/T/B/x") == "https://hooks.slack.com/…"

"""stega/pgque/message.py: a refusal tells nothing of what a payload holds, and a retry waits ever longer."""

import json
import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from stega.pgque import catalogue, client
from stega.pgque.message import Rejected, message_of, retry_delay

SECRET = "a-customers-words"
FIELDS = [(name, field) for name, event_type in catalogue.EVENT_TYPES.items() for field in event_type.payload]
WELCOME = {"user_id": 1, "email": "customer@example.com", "display_name": "Customer"}


def an_event(event_type, data, key=None):
    known = {
        "id": 7,
        "type": event_type,
        "data": data,
        "extra1": key or str(uuid.uuid4()),
        "retry_count": 0,
        "created_at": timezone.now(),
    }
    names = client.Event.__dataclass_fields__
    return client.Event(**{name: known.get(name) for name in names})


def refusal(event):
    with pytest.raises(Rejected) as refused:
        message_of(event, 1)
    return str(refused.value)


@pytest.mark.parametrize(("event_type", "field"), FIELDS)
def test_a_field_of_another_type_is_named_with_both_types_and_not_with_its_value(event_type, field):
    fields = catalogue.EVENT_TYPES[event_type].payload
    valid = {name: _of_type(kind) for name, kind in fields.items()}
    wrong = [SECRET] if fields[field] is not list else {SECRET: 1}

    reason = refusal(an_event(event_type, json.dumps(valid | {field: wrong})))

    assert SECRET not in reason
    assert f"needs {field} as " in reason
    assert reason.endswith("not array")


@pytest.mark.parametrize(
    "data",
    [
        f'"{SECRET}"',
        f"{SECRET} is no json",
        f'{{"user_id": "{SECRET}", "email": "a", "display_name": "b"}}',
        f'{{"email": "{SECRET}", "display_name": "{SECRET}"}}',
        f'{{"{SECRET}": 1e999}}',
        f'{{"user_id": NaN, "email": "{SECRET}"}}',
        f'{{"email": "\\{SECRET}"}}',
    ],
)
def test_what_is_wrong_with_a_payload_is_told_without_it(data):
    assert SECRET not in refusal(an_event("ticket.welcome", data))


def test_a_number_that_is_too_large_is_not_quoted():
    assert "77777" not in refusal(an_event("ticket.welcome", '{"user_id": 77777.0e999}'))


def test_a_key_that_is_none_is_not_quoted():
    assert SECRET not in refusal(an_event("ticket.welcome", json.dumps(WELCOME), key=SECRET))


def _of_type(kind):
    kind = kind[0] if isinstance(kind, tuple) else kind
    return kind()


@pytest.mark.parametrize(
    ("attempt", "jitter", "seconds"),
    [(0, 1.0, 2), (1, 1.0, 4), (5, 0.5, 32), (20, 1.0, 3600), (10_000, 1.0, 3600), (0, 0.0, 1)],
)
def test_the_pause_before_a_retry_doubles_up_to_an_hour(attempt, jitter, seconds):
    assert retry_delay(attempt, jitter) == timedelta(seconds=seconds)

"""operations/reasons.py: Stega's own words are told in the reader's language, and what others said stays as it is."""

import re
from types import SimpleNamespace

import pytest
from django.utils import translation

from notifications.channels import TemporaryFailure, slack
from notifications.delivery import _Attempt
from notifications.models.ledger import DeliveryQuerySet
from operations import reasons
from stega.pgque import client, message
from stega.pgque.message import Rejected


def in_portuguese(reason):
    with translation.override("pt-br"):
        return reasons.translated(reason)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("bad payload: ticket.welcome lacks email", "payload inválido: falta email em ticket.welcome"),
        (
            "bad payload: ticket.assigned needs actor_id as integer or null, not string",
            "payload inválido: ticket.assigned precisa de actor_id como integer ou null, não string",
        ),
        ("bad payload: the payload is no JSON object", "payload inválido: o payload não é um objeto JSON"),
        ("bad payload: NaN is no JSON value", "payload inválido: NaN não é um valor JSON"),
        ("bad payload: Extra data: line 1 column 2", "payload inválido: Extra data: line 1 column 2"),
        ("unknown event type 'x.y'", "tipo de evento desconhecido 'x.y'"),
        ("3 workers died of this message", "3 workers morreram com esta mensagem"),
        ("# workers died of this message", "# workers morreram com esta mensagem"),
        (
            "email to user:# given up: The mail server refused: # no such user",
            "email para user:# abandonado: O servidor de e-mail recusou: # no such user",
        ),
        ("email to user:5 given up: no answer", "email para user:5 abandonado: no answer"),
        (
            "Every run was cut by TASK_TIMEOUT_SECONDS, or ended its worker.",
            "Toda execução foi cortada por TASK_TIMEOUT_SECONDS, ou encerrou seu worker.",
        ),
    ],
)
def test_our_own_words_are_told_in_the_readers_language(reason, told):
    assert in_portuguese(reason) == told
    assert reasons.translated(reason) == reason


@pytest.mark.parametrize(
    "reason", ["", "KeyError 23505 at stega/text.py:12", "max retries exceeded", "Done", "The mail server refused"]
)
def test_what_others_said_stays_as_it_is(reason):
    assert in_portuguese(reason) == reason


@pytest.mark.parametrize(
    ("event_type", "data"),
    [
        ("ticket.welcome", "[]"),
        ("ticket.welcome", "{}"),
        ("ticket.welcome", '{"number": 1e999}'),
        ("ticket.welcome", '{"number": NaN}'),
        ("ticket.assigned", '{"ticket_id": "7"}'),
        ("nobody.knows", "{}"),
    ],
)
def test_whatever_is_wrong_with_a_payload_is_known(event_type, data):
    event = client.Event(**{**dict.fromkeys(client.Event.__dataclass_fields__), "type": event_type, "data": data})

    with pytest.raises(Rejected) as refused:
        message.message_of(event, 1)

    told = in_portuguese(str(refused.value))
    assert told.startswith("payload inválido: ")
    assert not re.search(r"\b(is|lacks|needs|too|the|event)\b", told)


def test_what_a_delivery_says_of_a_notice_that_it_gives_up_is_known(monkeypatch):
    monkeypatch.setattr(DeliveryQuerySet, "settle_given_up", lambda *args: None)
    attempt = _Attempt(SimpleNamespace(channel="slack", recipient="product:5"), None, "", False)

    with pytest.raises(Rejected) as given_up:
        attempt._give_up(TemporaryFailure(slack.UNCERTAIN, "TimeoutError"))

    told = in_portuguese(str(given_up.value))
    with translation.override("pt-br"):
        uncertain = translation.gettext(slack.UNCERTAIN)
    assert uncertain != slack.UNCERTAIN
    assert told == f"slack para product:5 abandonado: {uncertain}: TimeoutError"

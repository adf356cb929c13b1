import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import pytest

from notifications.channels import PermanentFailure, TemporaryFailure, Uncertain, Untried, slack, smtp
from notifications.messages import Wording
from tests.notifications.channels import sending
from tests.support.receivers import Answer, WebhookReceiver
from tests.support.waiting import wait_until

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def send(webhook):
    slack.send(webhook.url, Wording("", "hello"))


def test_a_post_arrives(webhook):
    send(webhook)

    assert webhook.received == [{"text": "hello"}]


@pytest.mark.parametrize(
    ("status", "word", "kind"),
    [
        (400, "invalid_payload", PermanentFailure),
        (403, "action_prohibited", PermanentFailure),
        (404, "no_service", PermanentFailure),
        (410, "channel_is_archived", PermanentFailure),
        (408, "", TemporaryFailure),
        (429, "rate_limited", TemporaryFailure),
        (500, "rollup_error", TemporaryFailure),
        (503, "", TemporaryFailure),
    ],
)
def test_a_refusal_is_permanent_and_a_busy_server_is_not(webhook, status, word, kind):
    webhook.answer = Answer(status, word)

    with pytest.raises(kind) as failure:
        send(webhook)

    assert failure.value.detail == f"{status} {word}".strip()


def test_a_proxy_is_not_used_for_an_address_that_is_excepted(webhook, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    send(webhook)

    assert len(webhook.received) == 1


def test_a_proxy_of_the_environment_carries_the_post(webhook, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", webhook.url.removesuffix("/services/T000/B000/verysecret"))
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    slack.send("http://hooks.example/services/T000/B000/verysecret", Wording("", "hello"))

    assert webhook.received == [{"text": "hello"}]


def test_a_post_goes_by_the_name_of_stega(webhook):
    send(webhook)

    assert webhook.visitors == ["Stega"]


def test_each_try_is_one_request(webhook):
    webhook.answer = Answer(503)

    with pytest.raises(TemporaryFailure):
        send(webhook)

    assert len(webhook.received) == 1


def test_the_wait_that_slack_asks_for_is_passed_on(webhook):
    webhook.answer = Answer(429, "rate_limited", {"Retry-After": "7"})

    with pytest.raises(TemporaryFailure) as failure:
        send(webhook)

    assert failure.value.seconds == 7


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        ("86400", 3600),
        ("9" * 5_000, 3600),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("١٢", None),
    ],
)
def test_retry_after_of_every_form_is_survived(value, seconds):
    assert slack.retry_after({"retry-after": value}, NOW) == seconds


def test_without_a_wait_a_busy_slack_gets_a_pause():
    failure = slack.classified(429, "", {}, NOW)

    assert isinstance(failure, TemporaryFailure)
    assert failure.seconds == slack.BUSY_SECONDS


def test_a_server_that_is_away_is_a_temporary_failure():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]

        with pytest.raises(TemporaryFailure, match="cannot be reached"):
            slack.send(f"http://127.0.0.1:{port}/services/verysecret", Wording("", "hello"))


def test_a_cut_connection_is_one_try(webhook):
    webhook.drop = True

    with pytest.raises(Uncertain):
        send(webhook)

    assert len(webhook.received) == 1


def test_a_server_that_hangs_leaves_it_uncertain(webhook, settings):
    settings.DELIVERY_LEASE_SECONDS = 0.4
    webhook.gate.clear()

    with pytest.raises(Uncertain):
        send(webhook)


@pytest.mark.parametrize(("answer", "is_told"), [(Answer(), True), (Answer(500), False)])
def test_a_post_that_is_taken_after_it_was_given_up_is_told(webhook, settings, answer, is_told):
    settings.DELIVERY_LEASE_SECONDS = 0.4
    webhook.answer = answer
    webhook.gate.clear()
    late = threading.Event()
    with pytest.raises(Uncertain):
        slack.send(webhook.url, Wording("", "hello"), late.set)

    webhook.gate.set()
    wait_until(lambda: not threads_of_posts(), timeout=10)

    assert late.is_set() == is_told


def threads_of_posts():
    return [thread for thread in threading.enumerate() if thread.name.startswith(slack.POST)]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_webhook_that_sends_us_elsewhere_is_refused(webhook, status):
    webhook.answers.append(Answer(status, "", {"Location": webhook.url}))

    with pytest.raises(PermanentFailure):
        send(webhook)

    assert len(webhook.received) == 1


def test_an_answer_of_any_length_is_read_as_far_as_it_says_something(webhook):
    webhook.answer = Answer(500, "x" * 10_000_000)

    with pytest.raises(TemporaryFailure) as failure:
        send(webhook)

    assert failure.value.detail == "500"


def test_no_further_post_is_begun_while_many_are_still_listened_to(webhook, monkeypatch):
    monkeypatch.setattr(slack, "MOST_LEFT_BEHIND", 0)

    with pytest.raises(Untried):
        send(webhook)

    assert webhook.received == []


def test_a_webhook_that_leaves_posts_unanswered_gets_few_at_a_time_and_others_theirs(webhook, settings):
    settings.DELIVERY_LEASE_SECONDS = 0.4
    webhook.gate.clear()
    for _ in range(slack.MOST_OF_ONE_LINE):
        with pytest.raises(Uncertain):
            send(webhook)

    with WebhookReceiver() as other:
        send(other)
    with pytest.raises(Untried):
        send(webhook)

    assert (len(webhook.received), len(other.received)) == (slack.MOST_OF_ONE_LINE, 1)


def test_a_mail_server_whose_name_is_looked_up_for_ever_costs_no_post(webhook, mailbox, settings, monkeypatch):
    monkeypatch.setattr(slack, "MOST_LEFT_BEHIND", 1)
    settings.DELIVERY_LEASE_SECONDS = 0.4
    never = threading.Event()
    monkeypatch.setattr(smtp.Line, "open", lambda line: never.wait())
    with pytest.raises(TemporaryFailure):
        sending.send()

    send(webhook)

    never.set()
    assert len(webhook.received) == 1


@contextmanager
def saying(head, byte=b"a"):
    """The port of a server that says `head` to its visitor, then the byte, if any, now and then while it is heard."""

    def answer():
        with server, server.accept()[0] as visitor, suppress(OSError):
            visitor.sendall(head)
            while byte and not over.wait(0.02):
                visitor.sendall(byte)
            over.wait()

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(answer)
        try:
            yield server.getsockname()[1]
        finally:
            over.set()


@pytest.mark.parametrize(
    ("target", "head"),
    [
        ("http://127.0.0.1:{port}/verysecret", b"HTTP/1.1 200 OK\r\nX-A: "),
        ("https://127.0.0.1:{port}/verysecret", b"\x16\x03\x03\x40\x00"),
        ("https://hooks.example/verysecret", b"HTTP/1.1 200 OK\r\nX-A: "),
    ],
    ids=["headers", "TLS", "proxy"],
)
def test_what_answers_byte_by_byte_is_hung_up_on_in_the_end(settings, monkeypatch, target, head):
    monkeypatch.setattr(slack, "HEARD_SECONDS", 0.1)
    settings.DELIVERY_LEASE_SECONDS = 0.4
    with saying(head) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with pytest.raises(Uncertain):
            slack.send(target.format(port=port), Wording("", "hello"))

        wait_until(lambda: not threads_of_posts(), timeout=5)


CODES = ["no-such-code", "hex", "undefined", "utf-16", "utf-8"]


@pytest.mark.parametrize("code", CODES)
def test_a_success_is_one_whatever_code_its_words_are_in(webhook, code):
    webhook.answer = Answer(200, "ok", {"Content-Type": f"text/plain; charset={code}"})

    send(webhook)

    assert len(webhook.received) == 1


@pytest.mark.parametrize("code", CODES)
def test_a_refusal_is_one_whatever_code_its_words_are_in(webhook, code):
    webhook.answer = Answer(404, "no_service", {"Content-Type": f"text/plain; charset={code}"})

    with pytest.raises(PermanentFailure) as failure:
        send(webhook)

    assert failure.value.detail == "404 no_service"


@pytest.mark.parametrize("headers", ["Content-Length: 100", "Transfer-Encoding: chunked"])
def test_the_status_decides_though_the_words_never_end(settings, headers):
    settings.DELIVERY_LEASE_SECONDS = 0.4

    with saying(f"HTTP/1.1 404 Gone\r\n{headers}\r\n\r\n".encode()) as port, pytest.raises(PermanentFailure):
        slack.send(f"http://127.0.0.1:{port}/verysecret", Wording("", "hello"))


def test_no_more_of_an_answer_is_waited_for_than_its_first_thousand_bytes():
    head = b"HTTP/1.1 500 Oops\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 1000

    with saying(head, byte=b"") as port:
        with pytest.raises(TemporaryFailure):
            slack.send(f"http://127.0.0.1:{port}/verysecret", Wording("", "hello"))

        assert threads_of_posts() == []


@pytest.mark.parametrize(
    "target", ["", "ftp://127.0.0.1/verysecret", "verysecret", "https://", "http://[verysecret", "https://é/verysecret"]
)
def test_a_webhook_that_is_no_web_address_is_a_permanent_failure(target):
    with pytest.raises(PermanentFailure, match="not a web address") as failure:
        slack.send(target, Wording("", "hello"))

    assert "verysecret" not in str(failure.value)


@pytest.mark.parametrize(
    "answer",
    [Answer(), Answer(429), Answer(404, "no_service"), Answer(500, "error at /services/T000/B000/verysecret")],
)
def test_the_webhook_appears_in_no_log_and_no_error(webhook, caplog, answer):
    caplog.set_level(logging.DEBUG)
    webhook.answer = answer
    told = ""

    try:
        send(webhook)
    except (TemporaryFailure, PermanentFailure) as failure:
        told = str(failure) + failure.detail

    assert "verysecret" not in caplog.text + told

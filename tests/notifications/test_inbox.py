import json
from email import message_from_bytes, policy

import pytest
from django.core.mail import EmailMultiAlternatives
from django.test import Client

import stega.urls  # noqa: F401 - decides once whether there is an inbox, by the settings of that moment
from notifications.inbox import FileMailBackend

URL = "/dev/inbox/"


@pytest.fixture(autouse=True)
def data_dir(settings, tmp_path):
    settings.STEGA_DATA_DIR = tmp_path
    return tmp_path


@pytest.fixture
def visitor():
    return Client(enforce_csrf_checks=True)


def send(subject="Hello", text="Good morning\n", to='"Doe, Jane" <jane@example.com>'):
    message = EmailMultiAlternatives(subject, text, to=[to], headers={"Message-ID": "<1@example.com>"})
    message.attach_alternative("<p>Good morning</p>", "text/html")
    FileMailBackend().send_messages([message])


def post(visitor, body, **headers):
    return visitor.post(URL + "slack/", body, content_type="application/json", **headers)


def captured(visitor):
    return visitor.get(URL, {"format": "json"}).json()


def test_an_empty_inbox_is_empty(visitor):
    assert captured(visitor) == {"mail": [], "slack": []}


def test_json_gives_a_mail_with_the_bare_address(visitor):
    send()

    assert captured(visitor)["mail"] == [
        {
            "to": "jane@example.com",
            "subject": "Hello",
            "text": "Good morning\n",
            "message_id": "<1@example.com>",
        }
    ]


def test_json_gives_a_long_subject_as_it_was_written(visitor):
    subject = "[#12] Atribuído a você: " + "impressora em chamas " * 5

    send(subject=subject.strip())

    assert captured(visitor)["mail"][0]["subject"] == subject.strip()


def test_json_gives_posts_oldest_first(visitor):
    post(visitor, {"text": "first"})
    post(visitor, {"text": "second"})

    assert captured(visitor)["slack"] == [{"text": "first"}, {"text": "second"}]


def test_a_mail_is_a_file_that_mail_programs_read(data_dir):
    send(subject="Olá, você! 🎉", text="ação\n")

    (file,) = (data_dir / "mail").iterdir()
    message = message_from_bytes(file.read_bytes(), policy=policy.default)

    assert file.suffix == ".eml"
    assert message["Subject"] == "Olá, você! 🎉"
    assert message.get_body(("plain",)).get_content() == "ação\n"  # type: ignore[union-attr]


def test_a_mail_appears_whole_or_not_at_all(visitor, monkeypatch):
    def full(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.replace", full)

    with pytest.raises(OSError, match="no space"):
        send()

    assert captured(visitor)["mail"] == []


def test_a_mail_that_is_still_being_written_is_not_shown(visitor, data_dir):
    send()
    (data_dir / "mail" / "99-half.part").write_bytes(b"To: nobody")

    assert len(captured(visitor)["mail"]) == 1


def test_the_page_shows_newest_first(visitor):
    send(subject="morning")
    send(subject="evening")

    page = visitor.get(URL).content.decode()

    assert page.index("evening") < page.index("morning")


def test_the_page_says_when_a_mail_was_sent(visitor):
    send()

    assert "just now</time>" in visitor.get(URL).content.decode()


def test_the_page_shows_text_as_text(visitor):
    send(subject="<script>alert(1)</script>", text="<b>bold</b>")
    post(visitor, {"text": "<img src=x>"})

    page = visitor.get(URL).content.decode()

    assert "<script>alert" not in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "&lt;img src=x&gt;" in page


def test_the_page_speaks_the_language_of_the_browser(visitor):
    page = visitor.get(URL, headers={"Accept-Language": "pt-BR"})

    assert page.headers["Content-Language"] == "pt-br"


def test_a_post_is_answered_as_slack_answers(visitor):
    response = post(visitor, {"text": "hello"})

    assert (response.status_code, response.content) == (200, b"ok")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b'{"text": 1}',
        b'{"text": " "}',
        b"\xff",
        b"[" * 50_000,
    ],
)
def test_a_post_that_slack_would_refuse_is_refused(visitor, body):
    response = post(visitor, body)

    assert response.status_code == 400
    assert captured(visitor)["slack"] == []


def test_a_post_with_half_a_character_does_not_break_the_page(visitor):
    post(visitor, b'{"text": "a\\ud800b"}')

    assert "a?b" in visitor.get(URL).content.decode()


def test_a_post_of_a_megabyte_is_refused(visitor):
    assert post(visitor, json.dumps({"text": "x" * 1_000_000})).status_code == 413


def test_posts_are_not_read_by_get(visitor):
    assert visitor.get(URL + "slack/").status_code == 405


@pytest.mark.parametrize("path", [URL, URL + "?format=json"])
def test_production_has_no_inbox(visitor, settings, path):
    settings.STEGA_DEV_INBOX = False

    assert visitor.get(path).status_code == 404


def test_production_takes_no_posts(visitor, settings):
    settings.STEGA_DEV_INBOX = False

    assert post(visitor, {"text": "hello"}).status_code == 404

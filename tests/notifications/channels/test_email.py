import smtplib
import socket
import ssl
import uuid
from email import message_from_bytes, policy
from email.headerregistry import Address
from email.policy import compat32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifications.channels import Deferred, PermanentFailure, TemporaryFailure, email
from notifications.channels.deadline import DeadlineExceeded
from notifications.messages import Wording
from tests.notifications.channels.sending import KEY, WORDING, send

PLAIN = email.composed("jane@example.com", "Jane", WORDING, "<1@example.com>")


def as_read(message):
    return message_from_bytes(message.message().as_bytes(), policy=policy.default)


def test_a_mail_arrives_as_text_and_as_html(mailbox):
    send()

    (mail,) = mailbox.received
    assert mail.to == "jane@example.com"
    assert mail.message["Subject"] == "[#12] Printer on fire"
    assert mail.message.get_body(("plain",)).get_content() == "It burns.\n"
    assert mail.message.get_body(("html",)).get_content() == "<p>It burns.</p>"


def test_the_boundary_of_each_mail_is_another_and_is_known_before_its_text_is_looked_at():
    boundaries = {PLAIN.message().get_boundary(), PLAIN.message().get_boundary()}

    assert len(boundaries - {None}) == 2


@pytest.mark.parametrize("words", ["word " * 60, "wordwithoutspaces" * 20, "é " * 60])
def test_a_header_of_any_length_is_written_as_the_library_writes_it(words):
    for length in range(1, 120):
        mail = email.composed(
            "a@example.com", "Ana", Wording(words[:length].strip(), "t", "<p>t</p>"), "<1@example.com>"
        )
        message = mail.message()
        written = message.as_bytes()
        for part in message.walk():
            part.policy = compat32

        assert written == message.as_bytes()


def test_a_mail_asks_machines_not_to_answer(mailbox):
    send()

    message = mailbox.received[0].message
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["X-Auto-Response-Suppress"] == "All"


def test_every_try_carries_the_same_message_id(mailbox):
    send()
    send()

    assert {mail.message["Message-ID"] for mail in mailbox.received} == {
        f"<{uuid.uuid5(KEY, 'user:5')}@help.example.com>"
    }


def test_two_recipients_have_two_message_ids():
    assert email.message_id(KEY, "user:5") != email.message_id(KEY, "user:6")


@pytest.mark.parametrize(
    "name",
    ['Doe, Jane "JD" <x>', "José Ñandú", "名前", "a\r\nBcc: boss@example.com", "x" * 500, "", "\ud800", "O'Neil; (x)"],
)
def test_any_name_makes_exactly_one_recipient(mailbox, name):
    send(name=name)

    (mail,) = mailbox.received
    assert [each.addr_spec for each in mail.message["To"].addresses] == ["jane@example.com"]
    assert mail.message["Bcc"] is None


def test_a_name_is_shown_as_it_is(mailbox):
    send(name='Doe, Jane "JD" <x>')

    assert mailbox.received[0].message["To"].addresses[0].display_name == 'Doe, Jane "JD" <x>'


@pytest.mark.parametrize("line_break", ["\r\n", "\n", "\r", "\x0b", "\x85", "\u2028"])
def test_a_line_break_in_a_subject_adds_no_header(mailbox, line_break):
    send(wording=Wording(f"Down{line_break}Bcc: boss@example.com", "text", "<p>html</p>"))

    (mail,) = mailbox.received
    assert mail.message["Subject"] == "Down Bcc: boss@example.com"
    assert mail.message["Bcc"] is None
    assert mail.message["To"].addresses == (Address("Jane", addr_spec="jane@example.com"),)


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_hostile_text_adds_no_header_and_no_recipient(subject, name):
    message = email.composed("jane@example.com", name, Wording(subject, "text", "<p>html</p>"), "<1@example.com>")
    read = as_read(message)

    assert sorted(read.keys()) == sorted(as_read(PLAIN).keys())
    assert [each.addr_spec for each in read["To"].addresses] == ["jane@example.com"]


def test_an_address_with_an_international_domain_is_reached(mailbox):
    send("jane@exämple.org")

    assert mailbox.addresses() == ["jane@xn--exmple-cua.org"]


@pytest.mark.parametrize(
    "target",
    [
        "",
        "jane",
        "zoë@example.org",
        "a@b@c.org",
        "jane@example.com\nBcc: x@example.com",
        "jane@",
        "jane@" + "é" * 60 + ".org",
        "\u212a@example.org",
        "\x00@a.org",
    ],
)
def test_an_address_no_mail_can_reach_is_a_permanent_failure(mailbox, target):
    with pytest.raises(PermanentFailure, match="Not an address"):
        send(target)

    assert mailbox.connections == 0


@pytest.mark.parametrize("answer", ["550 5.1.1 no such user", "553 5.1.3 bad address", "554 5.7.1 refused"])
def test_a_refused_recipient_is_a_permanent_failure_with_the_servers_words(mailbox, answer):
    mailbox.rcpt = lambda address: answer

    with pytest.raises(PermanentFailure) as failure:
        send()

    assert failure.value.detail == answer


@pytest.mark.parametrize(
    "quoted", ["Printer on fire", "It burns like hell", "=?utf-8?q?=F0=9F=94=A5_Printer_on_fire?="]
)
def test_what_the_server_quotes_of_the_mail_is_not_kept(mailbox, quoted):
    mailbox.data = lambda mail: f"554 5.7.1 Content rejected: {quoted}, see https://filter.example/17"

    with pytest.raises(PermanentFailure) as failure:
        send(wording=Wording("🔥 Printer on fire", "It burns like hell 🔥", "<p>It burns like hell 🔥</p>"))

    assert failure.value.detail == "554 5.7.1 Content rejected: …, see https://filter.example/17"


@pytest.mark.parametrize("secret", ["a-password", "AHN0ZWdhAGEtcGFzc3dvcmQ=", "YS1wYXNzd29yZA=="])
def test_what_the_server_quotes_of_our_sign_in_is_not_kept(mailbox, settings, secret):
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "stega", "a-password"
    mailbox.rcpt = lambda address: f"503 5.5.1 bad sequence after AUTH PLAIN {secret}"

    with pytest.raises(PermanentFailure) as failure:
        send()

    assert failure.value.detail == "503 5.5.1 bad sequence after AUTH PLAIN …"


def test_whose_address_it_was_is_for_the_ledger_alone(mailbox):
    mailbox.rcpt = lambda address: f"550 5.1.1 <{address}>: no such user"

    with pytest.raises(PermanentFailure) as failure:
        send()

    assert failure.value.detail == "550 5.1.1 <jane@example.com>: no such user"
    assert str(failure.value) == "The mail server refused: 550 5.1.1 <…@example.com>: no such user"


@pytest.mark.parametrize("answer", ["450 4.1.2 try later", "451 4.7.1 greylisted", "452 4.2.2 mailbox full"])
def test_a_recipient_that_may_be_taken_later_is_put_off(mailbox, answer):
    mailbox.rcpt = lambda address: answer

    with pytest.raises(Deferred):
        send()


@pytest.mark.parametrize("step", ["rcpt", "data"])
def test_a_server_that_says_good_bye_at_a_recipient_or_a_mail_is_at_fault_itself(mailbox, step):
    setattr(mailbox, step, lambda _: "421 4.3.2 closing")

    with pytest.raises(TemporaryFailure) as failure:
        send()

    assert not isinstance(failure.value, Deferred)


def test_a_refused_body_is_a_permanent_failure(mailbox):
    mailbox.data = lambda mail: "554 5.7.1 looks like spam"

    with pytest.raises(PermanentFailure):
        send()


def test_a_body_that_may_be_taken_later_is_put_off(mailbox):
    mailbox.data = lambda mail: "452 4.3.1 disk full"

    with pytest.raises(Deferred):
        send()


def test_a_wrong_password_of_ours_is_a_temporary_failure(mailbox, settings):
    settings.EMAIL_HOST_USER = "stega"
    settings.EMAIL_HOST_PASSWORD = "old"
    mailbox.sign_in_works = False

    with pytest.raises(TemporaryFailure, match="535"):
        send()


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (smtplib.SMTPRecipientsRefused({"a@b.c": (550, b"unknown")}), PermanentFailure),
        (smtplib.SMTPRecipientsRefused({"a@b.c": (530, b"sign in first")}), TemporaryFailure),
        (smtplib.SMTPRecipientsRefused({"a@b.c": (451, b"later")}), Deferred),
        (smtplib.SMTPRecipientsRefused({"a@b.c": (421, b"closing")}), TemporaryFailure),
        (smtplib.SMTPDataError(554, b"spam"), PermanentFailure),
        (smtplib.SMTPDataError(451, b"later"), Deferred),
        (smtplib.SMTPDataError(421, b"closing"), TemporaryFailure),
        (smtplib.SMTPSenderRefused(451, b"not now", "stega@example.com"), TemporaryFailure),
        (smtplib.SMTPSenderRefused(550, b"not you", "stega@example.com"), TemporaryFailure),
        (smtplib.SMTPAuthenticationError(535, b"wrong password"), TemporaryFailure),
        (smtplib.SMTPConnectError(554, b"no service"), TemporaryFailure),
        (smtplib.SMTPHeloError(501, b"who"), TemporaryFailure),
        (smtplib.SMTPServerDisconnected("gone"), TemporaryFailure),
        (smtplib.SMTPNotSupportedError("no STARTTLS"), TemporaryFailure),
        (socket.gaierror(-3, "name resolution"), TemporaryFailure),
        (ConnectionRefusedError(), TemporaryFailure),
        (ssl.SSLCertVerificationError("certificate has expired"), TemporaryFailure),
        (TimeoutError(), TemporaryFailure),
        (DeadlineExceeded(), TemporaryFailure),
        (OSError(28, "no space left"), TemporaryFailure),
    ],
)
def test_only_the_recipients_own_fault_is_permanent_or_put_off(failure, kind):
    classified = email.classified(failure, is_in_doubt=True)

    assert isinstance(classified, kind)
    assert isinstance(classified, Deferred) == (kind is Deferred)


def test_a_sender_address_of_ours_that_is_wrong_is_no_fault_of_the_recipient(mailbox, settings):
    settings.DEFAULT_FROM_EMAIL = "nonsense\n"

    with pytest.raises(ValueError):  # noqa: PT011 - whatever Django says
        send()

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from notifications.channels import PermanentFailure, TemporaryFailure, Uncertain, smtp
from tests.notifications.channels.sending import send


def test_a_server_that_is_away_is_a_temporary_failure(mailbox, settings):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        settings.EMAIL_PORT = nobody.getsockname()[1]

        with pytest.raises(TemporaryFailure, match="cannot be reached"):
            send()


def test_a_server_that_says_nothing_is_a_temporary_failure(settings, mailbox):
    settings.EMAIL_TIMEOUT = 0.2
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.EMAIL_PORT = silent.getsockname()[1]

        with pytest.raises(TemporaryFailure, match="cannot be reached"):
            send()


def test_a_server_that_hangs_after_the_body_leaves_it_uncertain(mailbox, settings):
    settings.EMAIL_TIMEOUT = None  # as for a server that sends a byte now and then
    settings.DELIVERY_LEASE_SECONDS = 1.0
    mailbox.gate.clear()

    with pytest.raises(Uncertain):
        send()

    assert len(mailbox.received) == 1


def test_a_connection_cut_after_the_body_leaves_it_uncertain(mailbox):
    mailbox.drop = True

    with pytest.raises(Uncertain):
        send()


def test_a_connection_lost_before_the_body_leaves_no_doubt(settings, mailbox):
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        settings.EMAIL_PORT = server.getsockname()[1]
        pool.submit(hang_up_on_a_sender, server)

        with pytest.raises(TemporaryFailure) as failure:
            send()

    assert not isinstance(failure.value, Uncertain)


def hang_up_on_a_sender(server):
    visitor, _ = server.accept()
    with visitor:
        visitor.sendall(b"220 welcome\r\n")
        visitor.recv(100)
        visitor.sendall(b"250 go on\r\n")
        visitor.recv(100)


def test_what_was_given_up_while_the_server_greeted_says_no_word_when_it_has(settings, mailbox):
    settings.DELIVERY_LEASE_SECONDS = 0.4
    with socket.create_server(("127.0.0.1", 0)) as slow:
        settings.EMAIL_PORT = slow.getsockname()[1]
        with ThreadPoolExecutor(1) as pool:
            visit = pool.submit(greet_slowly, slow)
            with pytest.raises(TemporaryFailure, match="cannot be reached"):
                send()
            heard = visit.result(timeout=10)

    assert heard == b""


def greet_slowly(server):
    """Keep greeting, as a tarpit does; what the visitor says in the end, which hangs up when it says nothing."""
    visitor, _ = server.accept()
    with visitor:
        visitor.settimeout(10)
        visitor.sendall(b"220-wait\r\n")
        return visitor.recv(100)


class Babbler:
    """Listens while the context is open, and answers to one command with lines without end."""

    def __init__(self, command, rcpt="250 go on"):
        self.command = command
        self.replies = {
            "": "220 welcome",
            "ehlo": "250-babbler\r\n250-STARTTLS\r\n250 AUTH PLAIN",
            **dict.fromkeys(("auth", "mail", "rset", "."), "250 go on"),
            "rcpt": rcpt,
            "data": "354 go on",
        }

    def __enter__(self):
        self._server = socket.create_server(("127.0.0.1", 0))
        self._pool = ThreadPoolExecutor(1)
        self._visit = self._pool.submit(self._talk)
        return self._server.getsockname()[1]

    def __exit__(self, *_):
        smtp.hang_up()
        self._server.close()
        self._visit.result(timeout=10)
        self._pool.shutdown()

    def _talk(self):
        visitor, _ = self._server.accept()
        with visitor, visitor.makefile("rb") as lines, suppress(ConnectionError):
            self._answer(visitor, "")
            for line in lines:
                self._answer(visitor, line.decode().partition(" ")[0].strip().lower() or "header ends")

    def _answer(self, visitor, command):
        while command == self.command:
            visitor.sendall(b"250-" + b"x" * 100 + b"\r\n")
        if command in self.replies:
            visitor.sendall(self.replies[command].encode() + b"\r\n")


@pytest.mark.parametrize("command", ["", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "."])
def test_a_reply_without_end_is_cut_and_is_a_temporary_failure(mailbox, settings, command):
    settings.DELIVERY_LEASE_SECONDS = 4.0
    settings.EMAIL_USE_TLS = command == "starttls"
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = ("stega", "secret") if command == "auth" else ("", "")
    with Babbler(command) as settings.EMAIL_PORT, pytest.raises(TemporaryFailure, match="too long") as failure:
        send()

    assert isinstance(failure.value, Uncertain) == (command == ".")


def test_a_reply_without_end_after_a_refusal_leaves_the_refusal_as_it_was(mailbox, settings):
    settings.DELIVERY_LEASE_SECONDS = 4.0

    with Babbler("rset", "550 nobody") as settings.EMAIL_PORT, pytest.raises(PermanentFailure, match="nobody"):
        send()


def test_a_connection_may_be_cut_while_its_sender_drops_it(mailbox):
    class Dropped:
        """As the library's, whose socket is gone at the second look."""

        @property
        def sock(self):
            return socks.pop()

        def close(self):
            pass

    with socket.socket() as sock:
        socks = [None, sock]
        backend = smtp.EmailBackend()
        backend.conversation = Dropped()

        backend.cut()

    assert socks == [None]


@pytest.mark.parametrize("answer", ["200 taken", "251 ok", "299 whatever"])
def test_any_reply_of_success_is_one(mailbox, answer):
    mailbox.data = lambda mail: mailbox.received.append(mail) or answer

    send()

    assert len(mailbox.received) == 1


@pytest.mark.parametrize("answer", ["taken", "354 go on and on"])
def test_a_reply_that_makes_no_sense_leaves_it_uncertain(mailbox, answer):
    mailbox.data = lambda mail: answer

    with pytest.raises(Uncertain):
        send()


def test_a_server_that_refuses_the_body_before_it_came_takes_the_next_mail(settings, mailbox):
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        settings.EMAIL_PORT = server.getsockname()[1]
        pool.submit(refuse_bodies, server, heard)
        with pytest.raises(PermanentFailure):
            send()
        smtp.hang_up()

    assert heard == ["ehlo", "mail", "rcpt", "data", "rset"]


def refuse_bodies(server, heard):
    visitor, _ = server.accept()
    with visitor, visitor.makefile("rb") as lines:
        visitor.sendall(b"220 welcome\r\n")
        for line in lines:
            command = line.split()[0].decode().lower()
            heard.append(command)
            visitor.sendall(b"550 no body\r\n" if command == "data" else b"250 go on\r\n")


def test_the_next_mail_goes_out_after_a_cut_connection(mailbox):
    mailbox.drop = True
    with pytest.raises(TemporaryFailure):
        send()
    mailbox.drop = False

    send(target="john@example.com")

    assert mailbox.addresses()[-1] == "john@example.com"


def test_the_mails_of_a_batch_share_one_connection(mailbox):
    for number in range(5):
        send(target=f"user{number}@example.com")

    assert len(mailbox.received) == 5
    assert mailbox.connections == 1


def test_a_connection_that_the_server_closed_meanwhile_is_opened_anew(mailbox):
    send(target="user1@example.com")
    mailbox.hang_up()

    send(target="user2@example.com")

    assert mailbox.addresses() == ["user1@example.com", "user2@example.com"]


def test_a_connection_left_idle_is_opened_anew(mailbox, monkeypatch):
    monkeypatch.setattr(smtp, "IDLE_SECONDS", 0.0)
    send()

    send()

    assert (len(mailbox.received), mailbox.connections) == (2, 2)


def test_a_refused_recipient_does_not_cost_the_connection(mailbox):
    mailbox.rcpt = lambda address: "550 no such user" if address.startswith("bad") else None
    with pytest.raises(PermanentFailure):
        send(target="bad@example.com")

    send(target="good@example.com")

    assert mailbox.addresses() == ["good@example.com"]
    assert mailbox.connections == 1

"""A real HTTP receiver on loopback: keeps the posts it gets, and answers what it is told to, as Slack or worse."""

import json
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: str = "ok"
    headers: Mapping[str, str] = field(default_factory=dict)
    after: float = 0.0
    """Seconds of thought."""


class WebhookReceiver:
    """Listens on 127.0.0.1 while the context is open. `answers` are given in turn, then `answer` for ever.
    `visitors` are the names that those who posted go by.

    `drop` cuts the connection after a post was taken, before the answer. Clearing `gate` makes it take a post and then
    say nothing until the gate is set.
    """

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.visitors: list[str | None] = []
        self.answers: deque[Answer] = deque()
        self.answer = Answer()
        self.drop = False
        self.gate = threading.Event()
        self.gate.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="webhook", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/services/T000/B000/verysecret"

    def texts(self) -> list[str]:
        return [post["text"] for post in self.received]

    def take(self, path: str, post: Any) -> Answer | None:
        """What to answer to a post; None cuts the connection."""
        self.received.append(post)
        self.gate.wait()
        if self.drop:
            return None
        return self.answers.popleft() if self.answers else self.answer

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler_for(receiver: WebhookReceiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.visitors.append(self.headers["User-Agent"])
            answer = receiver.take(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if answer is None:
                return
            threading.Event().wait(answer.after)
            body = answer.body.encode()
            self.send_response(answer.status)
            for name, value in {**answer.headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the tests look at what was received."""

    return Handler

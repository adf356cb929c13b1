"""A handler that remembers, and events for it."""

import uuid

from stega.pgque import client
from stega.pgque.message import Message
from tests.support.event_log import tick

WELCOME = {"user_id": 1, "email": "customer@example.com", "display_name": "Customer"}


class Recorder:
    """A handler that remembers what it saw, and raises what a test tells it to for a user id."""

    def __init__(self):
        self.messages: list[Message] = []
        self.raising: dict[int, list[Exception]] = {}

    def __call__(self, message):
        self.messages.append(message)
        planned = self.raising.get(message.payload["user_id"])
        if planned:
            raise planned.pop(0)

    @property
    def users(self):
        return [message.payload["user_id"] for message in self.messages]


def send(queue, *user_ids, event_type="ticket.welcome"):
    for user_id in user_ids:
        client.insert_event(queue, event_type, WELCOME | {"user_id": user_id}, str(uuid.uuid4()))
    tick(queue)


def fail_with(error):
    raise error


def each_of(script):
    """A function that does the next of the list at each call: returns it, or raises it."""

    def do_next():
        do = script.pop(0)
        return fail_with(do) if isinstance(do, Exception) else do

    return do_next

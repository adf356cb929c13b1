"""The consumer: reads whole batches and hands each message to its handler. Plain and cooperative form are one class."""

import json
import logging
import random
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from os import getpid

from django.conf import settings
from django.db import DatabaseError, InterfaceError, ProgrammingError, transaction
from django.utils.translation import gettext_noop

from stega import logs
from stega.database.outages import is_outage
from stega.models import MessageInHand
from stega.pgque import catalogue, client, query, session
from stega.pgque.leadership import Leadership
from stega.pgque.listener import Listener
from stega.pgque.message import MOST_DEATHS, Handler, Rejected, RetryLater, key_of, message_of, retry_delay
from stega.pgque.touching import Toucher
from stega.processes.process import Process, TryAgain
from stega.wording.text import clean, told, trace

logger = logging.getLogger(__name__)

REASON_LIMIT = 500
WORKERS_DIED = gettext_noop("%(number)s workers died of this message")
UNKNOWN_TYPE = gettext_noop("unknown event type %(type)s")
NO_HANDLER = gettext_noop("%(consumer)s has no handler for %(type)s in this version")
GIVE_BACK_SECONDS = 2.0
LIMIT_SECONDS = 10.0
"""Between two looks at how often the queue delivers an event again."""


@dataclass(slots=True)
class Failure:
    """A message that was not handled: when it comes again; without `retry_after` never.

    `event` is the whole event of one that goes to the dead letters, or is published anew so that its count is zero.
    """

    event_id: int
    reason: str
    retry_after: timedelta | None
    event: client.Event | None = None


@dataclass(slots=True)
class Progress:
    """How far this process is in the open batch, so that a batch received again is not handled again."""

    batch_id: int
    was_left_open: bool = False
    """Somebody had the batch before and died or was cut off: perhaps by one of its messages."""
    handled_up_to: int = 0
    failures: list[Failure] = field(default_factory=list)


def member_name() -> str:
    """A subconsumer name that no other start of any process shares: host, pid and a random part.

    The host's dots become dashes: the engine joins group and member with a dot.
    """
    return f"{socket.gethostname().replace('.', '-')}-{getpid()}-{uuid.uuid4().hex[:8]}"


class Consumer(Process):
    """Receive a batch, handle each message outside any transaction, then nack the failures and ack in one transaction.

    Delivery promise: at least once. A process that dies leaves the batch open and it comes again, so handlers are
    idempotent; a message that its workers die of is a dead letter after MOST_DEATHS. A plain consumer may run many
    times: one leads, the others stand by. With `group=True` every instance is a member of the cooperative group `name`
    and takes batches of its own; a member silent for `dead_interval` loses its batch to another, and its late ack then
    finishes nothing.

    `catch_up` writes down what the handlers could not during an outage. It is called at the start, once the databases
    may be back, whether this instance leads or not, and at the end; it may raise as they do.
    """

    def __init__(
        self,
        name: str,
        handlers: Mapping[str, Handler],
        *,
        queue: str | None = None,
        group: bool = False,
        dead_interval: float | None = None,
        interval: float | None = None,
        page: int | None = None,
        catch_up: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(interval=interval or settings.CONSUMER_POLL_SECONDS)
        self.name = name
        self.queue = queue or settings.PGQUE_QUEUE
        self.handlers = handlers
        self.instance = member_name()
        self.member = self.instance if group else None
        self.dead_interval = timedelta(seconds=dead_interval or settings.SLA_DEAD_INTERVAL_SECONDS)
        self.page = page or settings.CONSUMER_PAGE_SIZE
        self.catch_up = catch_up
        self.handled = 0
        self._leadership = Leadership(f"consumer {self.queue} {name}")
        self._term = 0
        self._inherited: int | None = None
        self._silent: list[int] = []
        self._progress: Progress | None = None
        self._max_retries = settings.PGQUE_MAX_RETRIES
        self._asked_at: float | None = None
        self._toucher: Toucher | None = None

    def describe(self) -> str:
        role = f"member {self.member}, dead interval {self.dead_interval}" if self.member else "plain"
        return f"queue {self.queue}, {role}, poll {self.interval:g} s"

    def setup(self) -> None:
        self.catch_up()
        if self.member:
            client.subscribe_subconsumer(self.queue, self.name, self.member)
            self._toucher = self._toucher or self._start_toucher(self.member)
        else:
            client.subscribe(self.queue, self.name)
        self._compare_retries()
        session.reset()
        connection = session.connection()
        self.wakeups = [Listener(self.queue, connection)] if connection else []

    def teardown(self) -> None:
        """A member leaves its group; what it had not handled of an open batch comes again by the retry queue."""
        if self._toucher:
            self._toucher.end()
            self._toucher = None
        with suppress(DatabaseError, InterfaceError):
            self.catch_up()
        if self.member:
            client.unsubscribe_subconsumer(self.queue, self.name, self.member)

    def idle_seconds(self) -> float:
        leads = self.member or self._leadership.held()
        return self.interval if leads else min(self.interval, settings.STANDBY_SECONDS)

    def step(self) -> bool:
        """One batch, an empty one too: True. No newer tick, or another instance leads: False."""
        batch_id = self._open_batch()
        if batch_id is None:
            return False
        if self._progress is None or self._progress.batch_id != batch_id:
            self._progress = Progress(batch_id, self._was_left_open(batch_id))
        if self._handle_batch(self._progress):
            self._finish(self._progress)
        elif self.member:
            self._give_up_rest(self._progress)
        return True

    def _open_batch(self) -> int | None:
        if self.member:
            self._silent = client.silent_windows(self.queue, self.name, self.dead_interval * 0.9)
            return client.next_batch_coop(self.queue, self.name, self.member, self.dead_interval)
        if not self._leadership.held():
            return None
        if self._term != self._leadership.terms:
            self._term = self._leadership.terms
            self._inherited = client.open_batch(self.queue, self.name)
        return client.next_batch(self.queue, self.name)

    def _was_left_open(self, batch_id: int) -> bool:
        """Whether somebody else has had the batch."""
        if self.member:
            return bool(self._silent) and client.batch_end(batch_id) in self._silent
        return batch_id == self._inherited

    def _handle_batch(self, progress: Progress) -> bool:
        """Handle what is left of the batch; False when a stop came first and the batch stays open."""
        for event in self._events(progress.batch_id):
            if event.id <= progress.handled_up_to:
                continue
            if self.stopping:
                return False
            self._moved()
            failure = (self._handle_noted if progress.was_left_open else self._handle)(event, progress.batch_id)
            if failure:
                progress.failures.append(failure)
            progress.handled_up_to = event.id
            self.handled += 1
        return True

    def _moved(self) -> None:
        self.beat()
        if self._toucher:
            self._toucher.moved()

    def _events(self, batch_id: int) -> Iterator[client.Event]:
        return client.batch_events(batch_id, self.page)

    def _handle_noted(self, event: client.Event, batch_id: int) -> Failure | None:
        """Handle a message that may be what killed its worker: noted before, forgotten after, given up in the end.

        The note of one given up stays until the batch is finished, and the note of one that an outage cut short until
        this process has it again.
        """
        notes = MessageInHand.objects
        deaths = notes.note(self.queue, self.name, event.id, event.created_at, self.instance)
        if deaths >= MOST_DEATHS:
            return self._failed(event, WORKERS_DIED % {"number": deaths}, None)
        failure = self._handle(event, batch_id)
        notes.forget(self.instance, event_id=event.id)
        return failure

    def _handle(self, event: client.Event, batch_id: int) -> Failure | None:
        """Call the handler; None when the message is done. An outage escapes: the batch comes again."""
        with logs.about(event_key=event.extra1 or None, event_id=event.id):
            return self._outcome(event, batch_id)

    def _outcome(self, event: client.Event, batch_id: int) -> Failure | None:
        try:
            handler = self._handler(event.type)
            if handler:
                handler(message_of(event, batch_id, is_last=self._is_last(event)))
                logger.info("Handled %s", event.type)
            return None
        except Rejected as error:
            return self._failed(event, str(error), None)
        except RetryLater as error:
            seconds = error.seconds
            delay = retry_delay(event.retry_count, random.random()) if seconds is None else timedelta(seconds=seconds)
            return self._failed(event, str(error), delay, renewed=not error.counted and self._is_worn(event))
        except Exception as error:
            if is_outage(error):
                raise
            logger.error("Handler of %s failed on event %d\n%s", event.type, event.id, trace(error))
            return self._failed(event, told(error), retry_delay(event.retry_count, random.random()))

    def _handler(self, event_type: str) -> Handler | None:
        """The handler; None when the catalogue gives the type to others. Raises Rejected when nobody knows it."""
        if event_type in self.handlers:
            return self.handlers[event_type]
        known = catalogue.EVENT_TYPES.get(event_type)
        if known is None:
            raise Rejected(UNKNOWN_TYPE % {"type": repr(event_type)})
        if self.name in known.consumers:
            raise RetryLater(NO_HANDLER % {"consumer": self.name, "type": repr(event_type)})
        return None

    def _failed(
        self, event: client.Event, reason: str, retry_after: timedelta | None, *, renewed: bool = False
    ) -> Failure:
        reason = clean(reason, REASON_LIMIT)
        ends = retry_after is None or (self._is_last(event) and not renewed)
        until = "goes to the dead letters" if ends else f"comes again in {retry_after}"
        logger.warning("Event %d (%s) %s: %s", event.id, event.type, until, reason)
        return Failure(event.id, reason, retry_after, event if renewed or retry_after is None else None)

    def _is_last(self, event: client.Event) -> bool:
        """Whether the engine makes a dead letter of the event when it is nacked."""
        return event.retry_count >= self._retries_allowed()

    def _is_worn(self, event: client.Event) -> bool:
        """Whether waits have used up half of the deliveries that the engine allows; the rest is for real faults."""
        return event.retry_count >= max(1, self._retries_allowed() // 2)

    def _retries_allowed(self) -> int:
        """The queue's own limit, looked up now and then; this process's where its role may not read it."""
        if self._asked_at is None or self.clock() - self._asked_at > LIMIT_SECONDS:
            with suppress(ProgrammingError):
                self._max_retries = client.max_retries(self.queue)
            self._asked_at = self.clock()
        return self._max_retries

    def _compare_retries(self) -> None:
        self._asked_at = None
        if (there := self._retries_allowed()) != settings.PGQUE_MAX_RETRIES:
            logger.warning(
                "PGQUE_MAX_RETRIES is %d here, but queue %s goes by %d until this is run: manage.py pgque_bootstrap",
                *(settings.PGQUE_MAX_RETRIES, self.queue, there),
            )

    def _finish(self, progress: Progress) -> None:
        """Nack the failures and ack the batch, in one transaction; a taken-over batch is somebody else's now.

        What the engine refuses to record is tried again after a pause, and no message is handled again meanwhile.
        """
        try:
            with transaction.atomic(using=query.ALIAS):
                for failure in progress.failures:
                    self._give_back(progress.batch_id, failure)
                acked = client.ack(progress.batch_id)
                if not acked:
                    transaction.set_rollback(True, using=query.ALIAS)
        except client.BatchGone:
            acked = 0
        except DatabaseError as error:
            raise TryAgain(f"batch {progress.batch_id} cannot be finished: {told(error)}") from error
        if not acked:
            logger.warning("%s lost batch %d to another member", self.name, progress.batch_id)
        if progress.was_left_open:
            MessageInHand.objects.forget(self.instance)
        self._progress = None
        if self._toucher:
            self._toucher.rest()

    def _give_up_rest(self, progress: Progress) -> None:
        """Send what a stopping member has not handled back to its group, at once; unless it is too much to do quickly.

        Then, and when the database refuses, the batch stays open, and what is in it comes again a minute after the
        member has left, or when it is taken over.
        """
        give_up_at = self.clock() + GIVE_BACK_SECONDS
        with suppress(client.BatchGone, DatabaseError, TimeoutError), transaction.atomic(using=query.ALIAS):
            for failure in progress.failures:
                self._give_back(progress.batch_id, failure)
            for event in self._events(progress.batch_id):
                if event.id > progress.handled_up_to:
                    client.event_retry(progress.batch_id, event.id, 0)
                if self.clock() > give_up_at:
                    raise TimeoutError
            client.ack(progress.batch_id)
            MessageInHand.objects.forget(self.instance)

    def _start_toucher(self, member: str) -> Toucher:
        toucher = Toucher(self.queue, self.name, member, self.dead_interval, settings.HANDLER_PATIENCE_SECONDS)
        toucher.start()
        return toucher

    def _give_back(self, batch_id: int, failure: Failure) -> None:
        """Nack, dead-letter, or publish anew: the engine counts every delivery, and waiting must not end an event."""
        if failure.event is None:
            client.nack(batch_id, failure.event_id, failure.retry_after or timedelta(), failure.reason)
        elif failure.retry_after is None:
            client.event_dead(batch_id, failure.event, failure.reason)
        else:
            event = failure.event
            client.insert_event(self.queue, event.type, json.loads(event.data or "{}"), str(key_of(event)))

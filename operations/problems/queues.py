"""Queues and their consumers."""

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.utils.translation import gettext as _

from operations.facts.queues import Consumer, Queue, Queues
from operations.problems import words
from operations.problems.words import Problem, seconds
from stega.pgque.catalogue import NOTIFICATION_WORKER, SLA_BREACH_DISPATCHER

OUR_CONSUMERS = {NOTIFICATION_WORKER: "notification_worker", SLA_BREACH_DISPATCHER: "sla_breach_worker"}
"""Consumer -> the command of its processes. Other programs' consumers are only looked at for what they leave unread."""


def faults(log: Queues) -> Iterator[Problem]:
    for queue in log.queues:
        yield from _of_queue(queue)
    for consumer in log.consumers:
        yield from _of_member(consumer) if consumer.member else _of_consumer(consumer)


def _of_queue(queue: Queue) -> Iterator[Problem]:
    if queue.new_dead_letters:
        yield words.POISON_MESSAGE.of(queue.name, queue=queue.name, number=queue.new_dead_letters)
    if queue.name == settings.PGQUE_QUEUE and queue.max_retries != settings.PGQUE_MAX_RETRIES:
        told = {"queue": queue.name, "there": queue.max_retries, "here": settings.PGQUE_MAX_RETRIES}
        yield words.RETRIES_DIFFER.of("PGQUE_MAX_RETRIES", **told, command="python manage.py pgque_bootstrap")
    for consumer in queue.waits_for or ():
        yield words.ROTATION_WAITS_FOR_CONSUMER.of(f"{queue.name} {consumer}", queue=queue.name, who=consumer)
    if queue.waits_for == ():
        who = _("an old transaction or a paused ticker")
        yield words.ROTATION_WAITS.of(queue.name, queue=queue.name, who=who)


def _of_consumer(consumer: Consumer) -> Iterator[Problem]:
    ours = OUR_CONSUMERS.get(consumer.name)
    command = f"python manage.py {ours}" if ours else consumer.name
    lag = consumer.lag or timedelta()
    if ours and consumer.sessions == ():
        yield words.WORKER_MISSING.of(consumer.name, consumer=consumer.name, command=command)
    elif consumer.pending and lag > timedelta(seconds=settings.WORKER_BEHIND_SECONDS):
        yield words.WORKER_BEHIND.of(
            consumer.name,
            consumer=consumer.name,
            queue=consumer.queue,
            pending=consumer.pending,
            age=seconds(lag),
            command=command,
        )


def _of_member(consumer: Consumer) -> Iterator[Problem]:
    """The ticker removes members that are silent for PGQUE_SILENT_MEMBER_SECONDS; twice that is a problem."""
    if consumer.last_seen > timedelta(seconds=2 * settings.PGQUE_SILENT_MEMBER_SECONDS):
        subject, age = f"{consumer.name}.{consumer.member}", seconds(consumer.last_seen)
        yield words.MEMBER_SILENT.of(subject, member=consumer.member, group=consumer.name, age=age)

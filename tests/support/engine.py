"""Short words for what engine tests do all the time, on any session."""

from typing import Any

from tests.support.sessions import Session


def send(session: Session, queue: str, *payloads: str, kind: str = "noted") -> list[int]:
    """Send text events one by one; their ids."""
    return [session.value("select pgque.send(%s, %s, %s::text)", [queue, kind, payload]) for payload in payloads]


def tick(session: Session, queue: str) -> int:
    """Make a tick whatever the throttle says; its id."""
    session.rows("select pgque.force_next_tick(%s)", [queue])
    return int(session.value("select pgque.ticker(%s)", [queue]))


def send_batches(session: Session, queue: str, payloads: str) -> None:
    """Each letter is an event in a batch of its own."""
    for payload in payloads:
        send(session, queue, payload)
        tick(session, queue)


def join(session: Session, queue: str, group: str, members: str) -> None:
    """Each letter is the name of a member."""
    for member in members:
        session.value("select pgque.subscribe_subconsumer(%s, %s, %s)", [queue, group, member])


def receive(session: Session, queue: str, consumer: str, limit: int | None = None) -> list[tuple[Any, ...]]:
    return session.rows("select * from pgque.receive(%s, %s, %s)", [queue, consumer, limit])


def receive_coop(
    session: Session, queue: str, group: str, member: str, dead_interval: str | None = None
) -> list[tuple[Any, ...]]:
    sql = "select * from pgque.receive_coop(%s, %s, %s, null, %s::interval)"
    return session.rows(sql, [queue, group, member, dead_interval])


def payloads(messages: list[tuple[Any, ...]]) -> list[str]:
    return [message[3] for message in messages]


def ack(session: Session, batch_id: int) -> int:
    return int(session.value("select pgque.ack(%s)", [batch_id]))


def nack(session: Session, batch_id: int, message_id: int, delay: str = "0 seconds", reason: str | None = None) -> int:
    sql = """
        select pgque.nack(%s, row(%s, null, null, null, null, null, null, null, null, null)::pgque.message,
            %s::interval, %s)
    """
    return int(session.value(sql, [batch_id, message_id, delay, reason]))


def drain(session: Session, queue: str, consumer: str) -> list[str]:
    """Receive and ack until there is nothing more; the payloads in the order of delivery."""
    seen: list[str] = []
    while messages := receive(session, queue, consumer):
        seen += payloads(messages)
        ack(session, messages[0][1])
    return seen


def age_rotation(session: Session, queue: str) -> None:
    """Make the next rotation of the queue due."""
    session.rows(
        "update pgque.queue set queue_switch_time = now() - 2 * queue_rotation_period where queue_name = %s", [queue]
    )


def rotate(session: Session, queue: str) -> int:
    """Both steps of a rotation, each in its own transaction; the table that producers now write to."""
    age_rotation(session, queue)
    session.rows("select pgque.maint_rotate_tables_step1(%s)", [queue])
    session.rows("select pgque.maint_rotate_tables_step2()")
    return current_table(session, queue)


def current_table(session: Session, queue: str) -> int:
    return int(session.value("select queue_cur_table from pgque.queue where queue_name = %s", [queue]))

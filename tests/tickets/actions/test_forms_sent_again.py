import threading
import uuid

import pytest
from django.db import connections, transaction

from accounts.models import User
from accounts.roles import Role
from tests.factories import make_user
from tests.support.waiting import wait_until
from tests.tickets.actions.written import history, promised, somebody_waits_for_a_lock
from tickets import actions
from tickets.models import Product, Ticket

pytestmark = pytest.mark.django_db


def test_what_a_form_sent_again_asks_for_is_done_and_promised_once(agent, customer, product):
    key = uuid.uuid4()

    opened = {
        actions.open_ticket(customer, product, "Down", "All of it", "critical", form_key=key).pk for _time in range(2)
    }
    added = {actions.comment(customer, min(opened), "Since Tuesday", form_key=key).pk for _time in range(2)}

    assert (len(opened), len(added)) == (1, 1)
    assert [task for task, _args in promised()] == ["publish_ticket_created", "publish_ticket_comment_added"]
    assert [type for type, _actor, _payload in history(Ticket.objects.get())] == ["created", "comment_added"]


def archive(ticket):
    Product.objects.update(is_active=False)


def close(ticket):
    Ticket.objects.update(status="closed")


def give_away(ticket):
    ticket.assignee = make_user("another", Role.AGENT)
    ticket.save()


def demote(ticket):
    User.objects.filter(role=Role.AGENT).update(role=Role.CUSTOMER)


@pytest.mark.parametrize("meanwhile", [archive, close, give_away, demote])
def test_a_form_sent_again_gets_the_first_answer_whatever_came_in_between(agent, product, meanwhile):
    key = uuid.uuid4()
    opened = actions.open_ticket(agent, product, "Down", "All of it", "critical", form_key=key)
    added = actions.comment(agent, opened.pk, "Since Tuesday", internal=True, form_key=key)
    meanwhile(Ticket.objects.get())
    agent.refresh_from_db()

    again = actions.open_ticket(agent, product, "Down", "All of it", "critical", form_key=key)
    said_again = actions.comment(agent, opened.pk, "Since Tuesday", internal=True, form_key=key)

    assert (again, said_again) == (opened, added)


def test_a_form_that_says_something_else_when_it_is_sent_again_is_another(agent, customer, product):
    key = uuid.uuid4()

    for words in ("Down", "Down, and the door is locked"):
        ticket = actions.open_ticket(customer, product, words, "All of it", "critical", form_key=key)
        actions.comment(customer, ticket.pk, words, form_key=key)
    actions.comment(customer, ticket.pk, "Down", form_key=key)

    assert list(Ticket.objects.order_by("pk").values_list("title", flat=True)) == [
        "Down",
        "Down, and the door is locked",
    ]
    assert list(ticket.comments.order_by("pk").values_list("body", flat=True)) == [
        "Down, and the door is locked",
        "Down",
    ]


@pytest.mark.django_db(databases=["default", "jobs"], transaction=True)
def test_of_a_form_that_arrives_twice_at_once_one_ticket_comes(customer, product):
    key, numbers = uuid.uuid4(), []

    def send():
        numbers.append(actions.open_ticket(customer, product, "Down", "All of it", "critical", form_key=key).pk)

    def send_again():
        try:
            send()
        finally:
            connections.close_all()

    second = threading.Thread(target=send_again)
    with transaction.atomic():
        send()
        second.start()
        wait_until(somebody_waits_for_a_lock, timeout=20)
    second.join(20)

    assert numbers == [Ticket.objects.get().pk] * 2

"""How every page looks: in both languages, by day and by night, on a desk and on a phone."""

import os
import uuid
from datetime import timedelta
from itertools import product as each_of
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from notifications.models import Delivery
from notifications.notice import Channel
from operations import records
from operations.models import Sample
from stega.models import OutboxEntry
from stega.pgque import client as event_log
from stega.pgque.catalogue import SLA_BREACH_DISPATCHER
from tests.browser import looks, pages
from tests.browser.visitor import DESK, PHONE
from tests.factories import make_ticket
from tests.support.letters import bury
from tickets import actions

SCREENSHOTS = os.environ.get("SCREENSHOTS")
"""A folder for a picture of each page, for whoever wants to look."""

DEVICES = list(each_of(("en", "pt-br"), ("light", "dark"), (DESK, PHONE)))
on_every_device = pytest.mark.parametrize(("language", "scheme", "width"), DEVICES)


@pytest.fixture
def look(visit):
    """Show pages to somebody on a device; what is wrong with each, where something is."""

    def look(user, addresses, **device):
        page = visit(user, **device).page
        looks.watch_jumps(page)
        who = user.username if user else "nobody"
        return {name: found for name, path in addresses.items() if (found := faults_of(page, path, f"{who}-{name}"))}

    def faults_of(page, path, name):
        page.goto(path)
        take_picture(page, name)
        found = {
            "sideways": looks.overflowing(page),
            "cut": looks.cut(page),
            "strayed": looks.strayed(page),
            "faint": looks.faint(page),
            "nameless": looks.nameless(page),
            "jumps": looks.jumps(page),
            "waiting": looks.waiting(page),
        }
        return {kind: each for kind, each in found.items() if each}

    return look


def take_picture(page, name):
    if SCREENSHOTS:
        width, language = page.viewport_size["width"], page.locator("html").get_attribute("lang")
        scheme = "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}-{language}-{scheme}-{width}.png", full_page=True)


@pytest.fixture
def samples(transactional_db):
    """An hour of samples, each minute one, up and down."""
    now = timezone.now().replace(second=0, microsecond=0)
    for minute in range(60):
        values = {
            f"events:{django_settings.PGQUE_QUEUE}": 40.0 * (60 - minute) - minute % 7,
            "lag:notification_worker": minute % 11 / 4,
            "lag:sla_breach_dispatcher": minute % 5 / 8,
            "deliveries:told": float(minute % 9),
            "deliveries:waiting": float(minute % 3),
            "deliveries:failed": float(minute % 17 == 0),
        }
        Sample.objects.take(now - timedelta(minutes=minute), values)


@pytest.fixture
def long_names(letters):
    """A group of dead letters and an entry that was given up, with names as long as they become."""
    queue, now = django_settings.PGQUE_QUEUE, timezone.now()
    event_log.subscribe(queue, SLA_BREACH_DISPATCHER)
    reason = "sla_breach_dispatcher has no handler for 'ticket.status_changed' in this version"
    bury(queue, SLA_BREACH_DISPATCHER, reason, event_type="ticket.status_changed")
    OutboxEntry.objects.create(
        key=uuid.uuid4(),
        task="publish_ticket_status_changed",
        relayed_at=now - timedelta(days=300),
        failed_at=now - timedelta(days=299),
        last_error="IntegrityError 23503 at notifications/models/ledger.py:212",
        attempts=12_345,
    )


@pytest.fixture
def told_twice(everything, customer, agent):
    """What somebody did to the ticket of `everything`, told to two people: names, badges and words in one cell."""
    actions.take(agent, everything.pk)
    (told,) = records.told_of_ticket(everything.pk)
    for recipient, state in ((f"user:{customer.pk}", "sent"), ("product:3", "pending")):
        Delivery.objects.create(
            event_key=told.key,
            event_type=told.event_type,
            ticket_id=everything.pk,
            channel=Channel.EMAIL if recipient.startswith("user") else Channel.SLACK,
            recipient=recipient,
            state=state,
        )


@on_every_device
def test_every_page_of_the_console_is_fit_to_read(
    look, operator, letters, everything, told_twice, samples, long_names, language, scheme, width
):
    faults = look(operator, pages.of_console(letters), language=language, scheme=scheme, width=width)

    assert faults == {}


@pytest.fixture
def talk(customer, agent, product):
    """A ticket with all that its page may show."""
    ticket = make_ticket(customer, product, title="Checkout refuses every card since the update of Tuesday evening")
    make_ticket(customer, product, title="x" * 150, priority="critical", due_in=-timedelta(hours=3))
    make_ticket(customer, product, title="Spaces in the address", priority="high", status="waiting")
    actions.take(agent, ticket.pk)
    actions.change_status(agent, ticket.pk, "in_progress")
    actions.comment(customer, ticket.pk, "It says “declined”.\n\nhttps://example.com/" + "a" * 120)
    actions.comment(agent, ticket.pk, "Seen before, in the spring.", internal=True)
    return ticket


@on_every_device
def test_every_page_of_the_help_desk_is_fit_to_read(look, customer, agent, admin, talk, language, scheme, width):
    device = {"language": language, "scheme": scheme, "width": width}

    faults = {person.username: look(person, pages.of_help_desk(talk), **device) for person in (customer, agent, admin)}

    assert faults == {"customer": {}, "agent": {}, "admin": {}}


@on_every_device
def test_the_page_to_sign_in_is_fit_to_read(look, language, scheme, width):
    assert look(None, {"sign in": "/accounts/login/"}, language=language, scheme=scheme, width=width) == {}

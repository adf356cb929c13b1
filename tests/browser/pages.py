"""Every page of Stega that a browser is shown, by name: those of the console and those of the help desk."""

from django.conf import settings
from django.urls import reverse
from django.utils.http import urlencode

from notifications.models import Delivery
from operations.models import Kind, OperatorAction
from tests.operations.console.lists import PAGES
from tests.support.console import WORKER
from tickets.models import Ticket


def of_console(letters: dict[str, list[int]]) -> dict[str, str]:
    """Addresses of the console's pages, on the rows that the fixture `everything` makes."""
    cause = {"queue": settings.PGQUE_QUEUE, "consumer": WORKER, "type": "ticket.welcome"}
    group = urlencode({**cause, "cause": "bad payload: ticket.welcome lacks email"})
    lists = {name: reverse(f"operations:{name}") for name in PAGES}
    return {
        **lists,
        "overview of a day": f"{lists['overview']}?span=day",
        "outbox, every entry": f"{lists['outbox']}?state=all",
        "outbox, given up": f"{lists['outbox']}?state=given_up",
        "dead letter": reverse("operations:dead_letter", args=[letters["bad"][0]]),
        "group": f"{reverse('operations:dead_letter_group')}?{group}",
        "replay": f"{reverse('operations:act', args=[Kind.REPLAY_GROUP])}?{group}",
        "purge": f"{reverse('operations:act', args=[Kind.PURGE_GROUP])}?{group}",
        "event": reverse("operations:event", args=[Delivery.objects.earliest("pk").event_key]),
        "ticket": reverse("operations:ticket", args=[Ticket.objects.earliest("pk").pk]),
        "action": reverse("operations:action", args=[OperatorAction.objects.earliest("pk").pk]),
    }


def of_help_desk(ticket: Ticket) -> dict[str, str]:
    return {
        "tickets": reverse("tickets:list"),
        "no tickets": f"{reverse('tickets:list')}?q=nothing+like+it",
        "new ticket": reverse("tickets:new"),
        "ticket": reverse("tickets:detail", args=[ticket.pk]),
        "profile": reverse("accounts:profile"),
        "mail": reverse("notifications:choices"),
        "sign out": reverse("accounts:logout"),
        "not found": reverse("tickets:detail", args=[0]),
    }

"""The figures at the top of the overview."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from notifications.models import State
from operations.facts import Facts
from operations.facts.actions import Actions
from operations.facts.ledger import Ledger
from operations.facts.outbox import Outbox
from operations.facts.queues import Queues
from operations.facts.reading import Reading
from operations.facts.tasks import Tasks
from operations.facts.tickers import Tickers
from operations.problems.actions import is_stuck
from operations.problems.tickers import is_unticked
from operations.templatetags.console import NOTHING, amount, capped, span, trouble
from stega.wording import moments


@dataclass(frozen=True, slots=True)
class Tile:
    label: str
    figure: str
    more: str
    href: str
    tone: str = ""
    """bad for a figure that asks for somebody, note for one whose small print does, away for one that nobody knows."""


def tiles(facts: Facts) -> list[Tile]:
    return [
        *_of_queues(facts.queues, facts.tickers),
        _of_outbox(facts.outbox),
        _of_ledger(facts.ledger),
        _of_tasks(facts.tasks),
        _of_tickers(facts.tickers),
        _of_actions(facts.actions),
    ]


def _of_queues(reading: Reading[Queues], tickers: Reading[Tickers]) -> Iterator[Tile]:
    found = reading.value
    if found is None:
        yield _away(_("Rate"), "queues", reading)
        yield _away(_("Lag"), "consumers", reading)
        yield _away(_("Dead letters"), "dead_letters", reading)
        yield _away(_("Retries"), "retries", reading)
        return
    per_second = sum(queue.events_per_second or 0.0 for queue in found.queues)
    yield Tile(_("Rate"), amount(round(per_second, 1)), _("events per second, over the last ticks"), _to("queues"))
    yield _lag(found, tickers.value)
    letters = sum(queue.dead_letters for queue in found.queues)
    retries = sum(queue.retries for queue in found.queues)
    last = max((queue.last_dead_letter_at for queue in found.queues if queue.last_dead_letter_at), default=None)
    newest = (
        _("newest %(moment)s") % {"moment": moments.ago(last, found.at)} if last else pgettext("dead letters", "none")
    )
    yield Tile(_("Dead letters"), capped(letters), newest, _to("dead_letters"), "bad" if letters else "")
    yield Tile(_("Retries"), capped(retries), _("wait to come again"), _to("retries"))


def _lag(log: Queues, tickers: Tickers | None) -> Tile:
    """What waits for a tick waits too: at most since the last one, which is told where no other will come."""
    unticked = [queue for queue in log.queues if queue.events_after_tick and is_unticked(queue, tickers)]
    ages = [each.lag for each in log.consumers if not each.member] + [queue.ticker_lag for queue in unticked]
    count = sum(each.behind or 0 for each in log.consumers if not each.member)
    behind = ngettext("%(count)s event behind", "%(count)s events behind", count) % {"count": amount(count)}
    more = f"{behind} · {_('no ticks')}" if unticked else behind
    oldest = max((age for age in ages if age), default=timedelta())
    return Tile(_("Lag"), span(oldest), more, _to("consumers"), "bad" if unticked else "")


def _of_outbox(reading: Reading[Outbox]) -> Tile:
    found = reading.value
    if found is None:
        return _away(_("Outbox"), "outbox", reading)
    given_up = ngettext("%(count)s given up", "%(count)s given up", found.given_up) % {"count": capped(found.given_up)}
    oldest = _("oldest %(span)s") % {"span": span(found.oldest_open)} if found.oldest_open else _("nothing waits")
    more = f"{oldest} · {given_up}" if found.given_up else oldest
    return Tile(_("Outbox"), capped(found.open), more, _to("outbox"), "note" if found.given_up else "")


def _of_ledger(reading: Reading[Ledger]) -> Tile:
    """Of the last hour."""
    found = reading.value
    if found is None:
        return _away(_("Deliveries"), "ledger", reading)
    by_state = {state: sum(each.deliveries for each in found.outcomes if each.state == state) for state in State}
    failed = by_state[State.FAILED] + by_state[State.GIVEN_UP]
    waiting = sum(each.deliveries for each in found.waiting)
    failures = ngettext("%(count)s failed", "%(count)s failed", failed) % {"count": amount(failed)}
    waits = ngettext("%(count)s waiting", "%(count)s waiting", waiting) % {"count": capped(waiting)}
    more = f"{failures}, {waits}"
    return Tile(_("Told in an hour"), capped(by_state[State.SENT]), more, _to("ledger"), "note" if failed else "")


def _of_tasks(reading: Reading[Tasks]) -> Tile:
    found = reading.value
    if found is None:
        return _away(_("Tasks due"), "tasks", reading)
    if found.clusters is None:
        return Tile(_("Tasks due"), capped(found.due), _("clusters hidden by a pooler"), _to("tasks"))
    clusters = len(found.clusters)
    more = ngettext("%(count)s cluster", "%(count)s clusters", clusters) % {"count": amount(clusters)}
    return Tile(_("Tasks due"), capped(found.due), more, _to("tasks"), "" if clusters else "bad")


def _of_tickers(reading: Reading[Tickers]) -> Tile:
    found = reading.value
    if found is None:
        return _away(_("Ticker"), "tickers", reading)
    if not found.is_visible:
        return Tile(_("Ticker"), NOTHING, _("hidden by a pooler"), _to("tickers"))
    if found.leader is None:
        return Tile(_("Ticker"), _("nobody leads"), "", _to("tickers"), "bad")
    since = _("for %(span)s") % {"span": moments.span(found.at - found.leader.since)}
    standbys = ngettext("%(count)s stands by", "%(count)s stand by", found.standbys) % {"count": amount(found.standbys)}
    return Tile(_("Ticker"), _("leads"), f"{since} · {standbys}", _to("tickers"))


def _of_actions(reading: Reading[Actions]) -> Tile:
    """Those that are not over."""
    found = reading.value
    if found is None:
        return _away(_("Actions under way"), "actions", reading)
    more = _("one still for %(span)s") % {"span": span(found.longest_still)} if is_stuck(found) else ""
    return Tile(_("Actions under way"), capped(found.open), more, _to("actions"), "bad" if more else "")


def _away(label: str, page: str, reading: Reading[object]) -> Tile:
    return Tile(label, NOTHING, trouble(reading), _to(page), "away")


def _to(page: str) -> str:
    return reverse(f"operations:{page}")

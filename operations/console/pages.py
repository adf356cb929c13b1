"""The pages that show. Each asks the databases it needs, side by side, and shows what they answered: a database that is
down costs its own part of a page and no other.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from accounts.http import SignedInRequest
from operations import dead_letters, facts, records, ways
from operations.console import access
from operations.console.addresses import subject_address
from operations.console.figures import SPANS, figures
from operations.console.figures import question as sample_question
from operations.console.tiles import tiles
from operations.dead_letters import FIRST, GroupKey
from operations.facts import ledger, outbox, queues, tasks, tickers
from operations.facts.reading import Question, Reading, read, read_all
from operations.models import COUNT_LIMIT, Kind, OperatorAction
from operations.problems import problems
from operations.problems.tickers import is_unticked
from operations.targets import TARGETS
from stega.pgque import oversight
from tickets.models import Ticket


def show(request: SignedInRequest, page: str, context: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
    """Render a page of the console with what every one of them needs."""
    everywhere = {
        "page": page,
        "may_operate": access.may_operate(request.user),
        "may_read_payloads": access.may_read_payloads(request.user),
        "read_at": timezone.now(),
    }
    return render(request, f"operations/{page}.html", {**context, **everywhere}, status=status)


@access.page(access.may_see)
def overview(request: SignedInRequest) -> HttpResponse:
    gathered = facts.gather()
    span = request.GET.get("span", "hour")
    span = span if span in SPANS else "hour"
    now = timezone.now()
    samples = read(sample_question(span, now))
    context = {
        "facts": gathered,
        "problems": problems(gathered),
        "tiles": tiles(gathered),
        "span": span,
        "samples": samples,
        "figures": figures(samples.value or {}, span, now),
    }
    return show(request, "overview", context)


@access.page(access.may_see)
def queue_list(request: SignedInRequest) -> HttpResponse:
    readings = read_all({"queues": queues.question(), "tickers": tickers.question()})
    known = readings["queues"].value.queues if readings["queues"].value else ()
    unticked = {queue.name for queue in known if is_unticked(queue, readings["tickers"].value)}
    return show(request, "queues", {**readings, "unticked": unticked})


@access.page(access.may_see)
def consumer_list(request: SignedInRequest) -> HttpResponse:
    return show(request, "consumers", {"queues": read(queues.question())})


@access.page(access.may_see)
def ticker_list(request: SignedInRequest) -> HttpResponse:
    readings = read_all({"tickers": tickers.question(), "queues": queues.question()})
    return show(request, "tickers", readings)


RETRIES_FIRST = ("-infinity", 0, 0)


@access.page(access.may_see)
def retry_list(request: SignedInRequest) -> HttpResponse:
    after = _retry_place(request.GET.get("after", ""))

    def ask() -> records.Page[dict[str, Any]]:
        rows = oversight.retries(after, records.PAGE_SIZE + 1)
        return records.page_of(
            rows, lambda row: f"{row['ev_retry_after'].isoformat()}_{row['ev_owner']}_{row['ev_id']}"
        )

    return show(request, "retries", {"retries": read(Question("events", ask))})


def _retry_place(text: str) -> tuple[Any, int, int]:
    moment, _, rest = text.partition("_")
    owner, _, event = rest.partition("_")
    try:
        at = parse_datetime(moment)
    except ValueError:
        at = None
    after_owner, after_event = records.as_number(owner), records.as_number(event)
    return RETRIES_FIRST if at is None or after_owner is None or after_event is None else (at, after_owner, after_event)


@access.page(access.may_see)
def dead_letter_groups(request: SignedInRequest) -> HttpResponse:
    after = _group_place(request.GET.get("after", ""))
    groups = read(Question("events", lambda: dead_letters.groups(after)))
    following = json.dumps(groups.value.next) if groups.value and groups.value.next else ""
    return show(request, "dead_letters", {"groups": groups, "following": following})


def _group_place(text: str) -> tuple[int, int, str, str]:
    try:
        queue, consumer, type_, cause = json.loads(text)
        place = int(queue), int(consumer), str(type_), str(cause)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return FIRST
    return place if records.is_storable(place[2] + place[3]) else FIRST


@access.page(access.may_see)
def dead_letter_group(request: SignedInRequest) -> HttpResponse:
    try:
        key = GroupKey.of(TARGETS[Kind.REPLAY_GROUP].named(request.GET))
    except ValueError:
        return redirect("operations:dead_letters")
    before = records.as_number(request.GET.get("before", "")) or dead_letters.NEWEST

    def letters() -> records.Page[dead_letters.Letter]:
        rows = dead_letters.letters(key, before, records.PAGE_SIZE + 1)
        return records.page_of(rows, lambda letter: str(letter.id))

    def count() -> int:
        return TARGETS[Kind.REPLAY_GROUP].count(key.as_dict(), None).count

    readings = read_all({"letters": Question("events", letters), "count": Question("events", count)})
    return show(request, "dead_letter_group", {"group": key, "count_limit": COUNT_LIMIT, **readings})


@access.page(access.may_see)
def dead_letter(request: SignedInRequest, id: int) -> HttpResponse:
    opened = read(Question("events", lambda: dead_letters.opened(id)))
    is_gone = not opened.trouble and opened.value is None
    payload = opened.value.payload if opened.value and access.may_read_payloads(request.user) else None
    status = 410 if is_gone else 200
    context = {"id": id, "opened": opened, "is_gone": is_gone, "payload": pretty(payload)}
    return show(request, "dead_letter", context, status=status)


def pretty(payload: str | None) -> str | None:
    """JSON as people read it; anything else as it is."""
    try:
        return json.dumps(json.loads(payload or ""), indent=2, ensure_ascii=False)
    except ValueError:
        return payload


@access.page(access.may_see)
def task_list(request: SignedInRequest) -> HttpResponse:
    readings = read_all({"tasks": tasks.question(), "failures": Question("jobs", records.failures)})
    return show(request, "tasks", readings)


@access.page(access.may_see)
def outbox_list(request: SignedInRequest) -> HttpResponse:
    state = request.GET.get("state", "open")
    state = state if state in records.OUTBOX_STATES else "open"
    key, before = request.GET.get("q", "").strip(), request.GET.get("before", "")
    readings = read_all(
        {
            "outbox": outbox.question(),
            "entries": Question("default", lambda: records.outbox(state, key, before)),
        }
    )
    return show(request, "outbox", {"state": state, "states": records.OUTBOX_STATES, "query": key, **readings})


@access.page(access.may_see)
def ledger_list(request: SignedInRequest) -> HttpResponse:
    query, state = request.GET.get("q", "").strip(), request.GET.get("state", "")
    before = request.GET.get("before", "")

    def ask() -> dict[str, Any]:
        page = records.deliveries(query, state, before)
        return {"page": page, "names": records.names_of(page.rows)}

    readings: dict[str, Reading[Any]] = read_all({"ledger": ledger.question(), "found": Question("default", ask)})
    return show(request, "ledger", {"query": query, "state": state, "states": records.DELIVERY_STATES, **readings})


@access.page(access.may_see)
def find(request: SignedInRequest) -> HttpResponse:
    """The search of every page: an event's key, a ticket's number, a recipient or a mail address."""
    query = request.GET.get("q", "").strip()
    if key := records.as_uuid(query):
        return redirect("operations:event", key)
    if (number := records.as_number(query.removeprefix("#"))) is not None:
        return redirect("operations:ticket", number)
    response = redirect("operations:ledger")
    response["Location"] += "?" + request.GET.urlencode()
    return response


@access.page(access.may_see)
def event(request: SignedInRequest, key: uuid.UUID) -> HttpResponse:
    way = ways.way(key)
    payloads = {}
    if way.log.value and access.may_read_payloads(request.user):
        payloads = {logged.id: pretty(logged.payload) for logged in way.log.value.events}
    return show(request, "event", {"way": way, "payloads": payloads}, status=404 if way.is_unknown else 200)


@access.page(access.may_see)
def ticket(request: SignedInRequest, ticket_id: int) -> HttpResponse:
    subject = Ticket.objects.filter(pk=ticket_id).first()
    told = read(Question("default", lambda: records.told_of_ticket(ticket_id)))
    context = {
        "ticket_id": ticket_id,
        "ticket": subject,
        "told": told,
        "may_open": Ticket.objects.visible_to(request.user).filter(pk=ticket_id).exists(),
    }
    return show(request, "ticket", context, status=200 if subject else 404)


@access.page(access.may_see)
def action_list(request: SignedInRequest) -> HttpResponse:
    page = read(Question("default", lambda: records.actions(request.GET.get("before", ""))))
    return show(request, "actions", {"actions": page})


@access.page(access.may_see)
def action(request: SignedInRequest, id: int) -> HttpResponse:
    subject = OperatorAction.objects.select_related("actor").filter(pk=id).first()
    if subject is None:
        return show(request, "action", {"action": None}, status=404)
    clusters = read(Question("jobs", tasks.clusters)) if subject.is_open else None
    context = {
        "action": subject,
        "address": subject_address(subject.kind, subject.target),
        "waits_for_cluster": clusters is not None and clusters.value == (),
    }
    return show(request, "action", context)

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.http import SignedInRequest
from accounts.models import User
from tickets import actions, policy, workflow
from tickets.forms import AssigneeForm, CommentForm, FilterForm, PriorityForm, StatusForm, TicketForm
from tickets.models import Product, Ticket

PAGE_SIZE = 25


@login_required
def ticket_list(request: SignedInRequest) -> HttpResponse:
    form = FilterForm(request.GET, user=request.user)
    tickets = form.apply(Ticket.objects.visible_to(request.user).for_page())
    page = Paginator(tickets, PAGE_SIZE).get_page(request.GET.get("page"))
    filters = request.GET.copy()
    filters.pop("page", None)
    is_filtered = any(value for name, value in filters.items() if name != "sort")
    context = {"form": form, "page": page, "filters": filters.urlencode(), "is_filtered": is_filtered}
    return render(request, "tickets/list.html", context)


@login_required
def new_ticket(request: SignedInRequest) -> HttpResponse:
    form = TicketForm(request.POST or None, initial=_only_product())
    if form.is_valid():
        try:
            ticket = actions.open_ticket(request.user, **form.cleaned_data)
        except actions.Conflict as conflict:
            form.add_error("product", str(conflict))
        else:
            messages.success(request, _("Ticket #%(number)d is open.") % {"number": ticket.pk})
            return _show(request, ticket.pk)
    return render(request, "tickets/new.html", {"form": form})


@login_required
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    return _detail(request, pk)


@login_required
def comment(request: SignedInRequest, pk: int) -> HttpResponse:
    """Add the comment; one that is refused, for whatever reason, is shown again with its text.

    Refuse rather than publish: what somebody meant to be internal is not for everybody.
    """
    if request.method != "POST":
        return redirect("tickets:detail", pk)
    form = CommentForm(request.POST, may_be_internal=policy.may_see_internal(request.user))
    if form.is_valid():
        try:
            sent = form.cleaned_data
            actions.comment(request.user, pk, sent["body"], internal=sent["is_internal"], form_key=sent["form_key"])
        except actions.Conflict as conflict:
            messages.error(request, str(conflict))
        except PermissionDenied:
            form.add_error("is_internal", _("You may not write internal comments. Nothing is saved."))
        except Ticket.DoesNotExist:
            return _not_found(request, unsaved=form)
        else:
            messages.success(request, _("Your comment is added."))
            return _show(request, pk)
    return _detail(request, pk, refused=form)


Step = Callable[[SignedInRequest, int], str]


def ticket_step(step: Step) -> Callable[[HttpRequest, int], HttpResponse]:
    """A view that does one thing to a ticket when posted to, says what it did, and shows the ticket again."""

    @login_required
    @wraps(step)
    def view(request: SignedInRequest, pk: int) -> HttpResponse:
        if request.method != "POST":
            return redirect("tickets:detail", pk)
        return _act(step, request, pk)

    return view  # type: ignore[return-value]


@ticket_step
def take(request: SignedInRequest, pk: int) -> str:
    actions.take(request.user, pk)
    return _("The ticket is yours.")


@ticket_step
def assign(request: SignedInRequest, pk: int) -> str:
    ticket = actions.assign(request.user, pk, _valid(request, pk, AssigneeForm(request.POST))["assignee"])
    return _("Assigned to %(name)s.") % {"name": ticket.assignee} if ticket.assignee else _("Nobody is assigned.")


@ticket_step
def change_status(request: SignedInRequest, pk: int) -> str:
    ticket = actions.change_status(request.user, pk, _valid(request, pk, StatusForm(request.POST))["status"])
    return _("The status is “%(status)s”.") % {"status": ticket.get_status_display()}


@ticket_step
def change_priority(request: SignedInRequest, pk: int) -> str:
    ticket = actions.change_priority(request.user, pk, _valid(request, pk, PriorityForm(request.POST))["priority"])
    return _("The priority is “%(priority)s”.") % {"priority": ticket.get_priority_display()}


def _act(step: Step, request: SignedInRequest, pk: int) -> HttpResponse:
    try:
        messages.success(request, step(request, pk))
    except Ticket.DoesNotExist:
        return _not_found(request)
    except actions.Conflict as conflict:
        messages.error(request, str(conflict))
    return _show(request, pk)


def _show(request: SignedInRequest, pk: int) -> HttpResponse:
    """The ticket again, or the list where this person does not see it any more."""
    if Ticket.objects.visible_to(request.user).filter(pk=pk).exists():
        return redirect("tickets:detail", pk)
    return redirect("tickets:list")


def _valid(request: SignedInRequest, pk: int, form: Form) -> dict[str, Any]:
    """What the form for staff says, or a Conflict with its complaints: the page offers nothing that is refused here."""
    if form.is_valid():
        return form.cleaned_data
    Ticket.objects.visible_to(request.user).get(pk=pk)
    if not policy.is_staff(request.user):
        raise PermissionDenied
    raise actions.Conflict(" ".join(str(error) for errors in form.errors.values() for error in errors))


def _detail(request: SignedInRequest, pk: int, refused: CommentForm | None = None) -> HttpResponse:
    user = request.user
    ticket = Ticket.objects.visible_to(user).for_page().filter(pk=pk).first()
    if ticket is None:
        return _not_found(request, unsaved=refused)
    comments = ticket.comments.select_related("author")
    if not policy.may_see_internal(user):
        comments = comments.filter(is_internal=False)
    context = {
        "ticket": ticket,
        "comments": comments,
        "is_staff": policy.is_staff(user),
        "history": ticket.events.select_related("actor") if policy.is_staff(user) else None,
        **_controls(user, ticket),
    }
    if not policy.may_comment(user, ticket):
        context["unsaved"] = refused
    else:
        context["comment_form"] = refused or CommentForm(may_be_internal=policy.may_comment_internally(user, ticket))
    return render(request, "tickets/detail.html", context)


def _controls(user: User, ticket: Ticket) -> dict[str, Any]:
    """The forms this person may use on this ticket, and no others."""
    controls: dict[str, Any] = {"may_take": policy.may_take(user, ticket)}
    offered = [new for new in workflow.next_statuses(ticket.status) if policy.may_change_status(user, ticket, new)]
    if offered:
        controls["status_form"] = StatusForm(offered=offered)
    if policy.may_change_priority(user, ticket):
        controls["priority_form"] = PriorityForm(present=ticket.priority)
    if policy.may_hand_over(user, ticket):
        may_be_nobody = policy.may_unassign(user, ticket)
        controls["assignee_form"] = AssigneeForm(present=ticket.assignee_id, may_be_nobody=may_be_nobody)
    return controls


def _not_found(request: HttpRequest, unsaved: CommentForm | None = None) -> HttpResponse:
    """The page of a ticket that is not there for this person, the same with DEBUG; a comment on it is not lost."""
    return render(request, "404.html", {"unsaved": unsaved}, status=404)


def _only_product() -> dict[str, Any]:
    """Spare the choice where there is only one."""
    products = Product.objects.filter(is_active=True)[:2]
    return {"product": products[0]} if len(products) == 1 else {}

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.http import SignedInRequest
from notifications import actions
from notifications.forms import KindsForm
from stega.audience import ticket_audience


@login_required
def choices(request: SignedInRequest) -> HttpResponse:
    form = KindsForm(request.POST if request.method == "POST" else None, user=request.user)
    if form.is_valid():
        form.save()
        messages.success(request, _("Your choice is saved."))
        return redirect("notifications:choices")
    return render(request, "notifications/choices.html", {"form": form})


@login_required
def mute(request: SignedInRequest, ticket_id: int) -> HttpResponse:
    """Mute a ticket for its author or assignee, the only ones who are told of its small talk; 404 for others."""
    if request.method == "POST":
        ticket = ticket_audience(ticket_id)
        if ticket is None or request.user.pk not in (ticket.author_id, ticket.assignee_id):
            raise Http404
        actions.mute(request.user, ticket_id)
        messages.success(request, _("You get no more mail about comments and the status of this ticket."))
    return redirect("tickets:detail", ticket_id)


@login_required
def unmute(request: SignedInRequest, ticket_id: int) -> HttpResponse:
    if request.method == "POST":
        actions.unmute(request.user, ticket_id)
        messages.success(request, _("You get mail about this ticket again."))
    return redirect("tickets:detail", ticket_id)

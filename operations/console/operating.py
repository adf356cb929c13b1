"""The pages that do: one question for every action, with the count of what it would touch."""

from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from accounts.http import SignedInRequest
from operations import actions
from operations.console import access
from operations.console.addresses import subject_address
from operations.console.forms import ConfirmationForm
from operations.console.pages import show
from operations.facts.reading import Question, Reading, read
from operations.models import COUNT_LIMIT, Kind
from operations.targets import TARGETS, Extent


@access.page(access.may_operate)
def act(request: SignedInRequest, kind: str) -> HttpResponse:
    """Ask, and when the answer has a reason, promise the work. Both times what it would touch is counted anew.

    Rows that came after the question was asked are left alone. A target that is gone: 410. A database that does not
    answer: 503, and nothing was done. An address that names no action or no target: 404.
    """
    try:
        wanted = Kind(kind)
        target = TARGETS[wanted].named(request.GET)
    except ValueError:
        return show(request, "act_unknown", {"back": subject_address(kind, {})}, status=404)
    form = ConfirmationForm(request.POST if request.method == "POST" else None)
    is_confirmed = form.is_valid()
    extent = _count(wanted, target, form.cleaned_data.get("up_to") if is_confirmed else None)
    if is_confirmed and extent.value is not None:
        try:
            action = actions.request(
                request.user,
                wanted,
                target,
                extent.value,
                reason=form.cleaned_data["reason"],
                key=form.cleaned_data["key"],
            )
        except actions.TakenAlready as taken:
            messages.info(request, _("This had been asked for before. It is done once."))
            return redirect(taken.action)
        except actions.NotPromised:
            messages.error(request, _("Nothing has been done. Ask again."))
            return redirect(request.get_full_path())
        except actions.Gone:
            return _question(request, wanted, target, extent, form)
        return redirect(action)
    return _question(request, wanted, target, extent, form)


def _count(kind: Kind, target: Mapping[str, str], up_to: int | None) -> Reading[Extent]:
    return read(Question(TARGETS[kind].alias, lambda: TARGETS[kind].count(target, up_to)))


def _question(
    request: SignedInRequest, kind: Kind, target: Mapping[str, str], extent: Reading[Extent], form: ConfirmationForm
) -> HttpResponse:
    is_gone = extent.value is not None and not extent.value.count
    status = 503 if extent.trouble else 410 if is_gone else 200
    if extent.value and not form.is_bound:
        form.initial["up_to"] = extent.value.up_to
    context = {
        "kind": kind,
        "target": {**extent.value.about, **target} if extent.value else target,
        "extent": extent,
        "count_limit": COUNT_LIMIT,
        "is_gone": is_gone,
        "form": form,
        "back": subject_address(kind, target),
    }
    return show(request, "act", context, status=status)

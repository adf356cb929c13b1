"""Who may see the console, who may act in it, who may read what events say about people."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from accounts.http import SignedInRequest
from accounts.models import User

VIEW = "operations.view_console"
OPERATE = "operations.operate_console"
PAYLOAD = "operations.view_payload"

Rest = ParamSpec("Rest")
View = Callable[Concatenate[SignedInRequest, Rest], HttpResponse]
OpenView = Callable[Concatenate[HttpRequest, Rest], HttpResponse]


def may_see(user: User) -> bool:
    return user.is_active and user.is_staff and user.has_perm(VIEW)


def may_operate(user: User) -> bool:
    return may_see(user) and user.has_perm(OPERATE)


def may_read_payloads(user: User) -> bool:
    return may_see(user) and user.has_perm(PAYLOAD)


def page(
    rule: Callable[[User], bool],
) -> Callable[[View[Rest]], OpenView[Rest]]:
    """A view for those whom the rule lets in: others get 403, and who has not signed in is asked to."""

    def decorator(view: View[Rest]) -> OpenView[Rest]:
        @login_required
        @wraps(view)
        def guarded(request: SignedInRequest, *args: Rest.args, **kwargs: Rest.kwargs) -> HttpResponse:
            if not rule(request.user):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return guarded  # type: ignore[return-value]  # login_required is typed for requests of nobody

    return decorator

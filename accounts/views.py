from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from accounts import actions
from accounts.forms import ProfileForm
from accounts.http import SignedInRequest
from accounts.models import User


class SignInView(LoginView):
    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        """Where to go on, except to this page: who is signed in would be sent round in a circle."""
        page: str = super().get_redirect_url()
        return "" if page.split("?")[0] == self.request.path else page

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user = form.get_user()
        assert isinstance(user, User)
        actions.sign_in(self.request, user)
        return HttpResponseRedirect(self.get_success_url())


class SignOutView(LogoutView):
    """Sign out when posted to; a visit, from a bookmark or by typing, gets the button to do so."""

    http_method_names = ["get", "head", "post", "options"]

    def get(self, request: HttpRequest) -> HttpResponse:
        if not request.user.is_authenticated:
            return redirect("accounts:login")
        return render(request, "accounts/sign_out.html")

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().post(request, *args, **kwargs)
        messages.success(request, _("You are signed out."))
        return response


def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """Stand in for the admin's own sign-in page, so that every sign-in goes through actions.sign_in().

    Sends nobody back whom the admin would send here again.
    """
    if request.user.is_authenticated and not (request.user.is_active and request.user.is_staff):
        raise PermissionDenied
    page = request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure()):
        page = reverse("admin:index")
    return redirect_to_login(page)


@login_required
def profile(request: SignedInRequest) -> HttpResponse:
    form = ProfileForm(request.POST or None, instance=get_object_or_404(User, pk=request.user.pk))
    if form.is_valid():
        user = form.save()
        with translation.override(user.language):
            messages.success(request, _("Your profile is saved."))
        return redirect("accounts:profile")
    return render(request, "accounts/profile.html", {"form": form})

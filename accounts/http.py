from django.http import HttpRequest

from accounts.models import User


class SignedInRequest(HttpRequest):
    """What a view behind login_required() gets: a request whose user is one of ours."""

    user: User

"""The development inbox: shows captured mail and Slack posts, and plays Slack. Open to all: never in production."""

import json
from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from notifications import inbox as captured
from stega.wording.text import clean

POST_LIMIT = 100_000
"""Bytes of one Slack post."""

View = Callable[[HttpRequest], HttpResponseBase]


def development_only(view: View) -> View:
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponseBase:
        if not settings.STEGA_DEV_INBOX:
            raise Http404
        return view(request)

    return guarded


@development_only
@require_GET
def inbox(request: HttpRequest) -> HttpResponseBase:
    """Captured mail and posts: a page, newest first, or with ?format=json all of them, oldest first."""
    mails, posts = captured.mails(), captured.posts()
    if request.GET.get("format") == "json":
        told = [{name: getattr(mail, name) for name in ("to", "subject", "text", "message_id")} for mail in mails]
        return JsonResponse({"mail": told, "slack": [{"text": text} for text in posts]})
    return render(request, "notifications/inbox.html", {"mails": mails[::-1], "posts": posts[::-1]})


@csrf_exempt
@development_only
@require_POST
def receive_post(request: HttpRequest) -> HttpResponseBase:
    """Take a post as Slack's incoming webhook does: `ok`, or 400 and a word that says why not."""
    try:
        length = int(request.headers.get("Content-Length") or 0)
    except ValueError:
        length = 0
    if length > POST_LIMIT:
        return HttpResponse("too_large", status=413, content_type="text/plain")
    try:
        text = json.loads(request.body)["text"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return HttpResponse("invalid_payload", status=400, content_type="text/plain")
    if not isinstance(text, str) or not text.strip():
        return HttpResponse("no_text", status=400, content_type="text/plain")
    captured.store_post(clean(text, POST_LIMIT))
    return HttpResponse("ok", content_type="text/plain")

"""How pages show times."""

from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone

from stega.wording import moments

register = template.Library()


@register.inclusion_tag("stega/moment.html")
def moment(value: datetime) -> dict[str, Any]:
    """A past time as "2 h ago", with the exact time for a closer look."""
    return {"moment": value, "text": moments.ago(value, timezone.now()), "exact": moments.exact(value)}

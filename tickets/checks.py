"""System checks of the help desk."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DatabaseError

from tickets import demo


@register(Tags.database)
def demo_stays_at_home(app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Everybody may read the demo's passwords. Looks into `default`, so `migrate` and `check --database` tell."""
    if settings.DEBUG or "default" not in (databases or ()):
        return []
    try:
        names = demo.people_with_public_passwords()
    except DatabaseError:  # away, or not migrated yet
        return []
    if not names:
        return []
    hint = "Give them other passwords, or deactivate them."
    return [Warning(f"People of the demo can sign in: {', '.join(names)}.", hint=hint, id="tickets.W001")]

"""Which app lives in which database: a closed world, in both directions."""

from typing import Any

from django.db.models import Model

HOME = {"django_q": "jobs"}
"""App label -> alias. Every other app lives in `default`; Django keeps nothing in `events`."""


class HomeRouter:
    """Send every model to its app's home and nothing anywhere else.

    `Q_CLUSTER["orm"]` moves only django-q2's queue table: its results and schedules follow this router. A migration
    that adds to the tables of another app says so with the hint `of_app`, and runs where that one lives.
    """

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return home(model._meta.app_label)

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        return home(model._meta.app_label)

    def allow_relation(self, first: Model, second: Model, **hints: Any) -> bool:
        return home(first._meta.app_label) == home(second._meta.app_label)

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == home(hints.get("of_app", app_label))


def home(app_label: str) -> str:
    return HOME.get(app_label, "default")

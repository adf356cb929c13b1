from django import template
from django.conf import settings

register = template.Library()


@register.simple_tag
def languages() -> list[tuple[str, str]]:
    """Each language by its own name: Django's tag of this kind translates the names."""
    return list(settings.LANGUAGES)

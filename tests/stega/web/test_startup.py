"""stega/web/startup.py: pages without style, or with a setting that is wrong, are not served."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from stega.web import startup


def test_the_web_refuses_to_serve_pages_without_style(settings, tmp_path):
    settings.DEBUG, settings.SECRET_KEY, settings.STATIC_ROOT = False, "0123456789" * 6, tmp_path

    with pytest.raises(ImproperlyConfigured, match="collectstatic"):
        startup.require_servable()


def test_the_web_serves_pages_when_only_warnings_are_left(settings, tmp_path):
    settings.DEBUG, settings.SECRET_KEY, settings.STATIC_ROOT = False, "0123456789" * 6, tmp_path
    (tmp_path / "staticfiles.json").write_text("{}")

    startup.require_servable()

"""The web process: `gunicorn stega.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

from stega.processes.startup import (
    WEB_REFUSES,
    end_statements_of_web,
    refusing_clearly,
    require_web,
    share_settings_of_web,
)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "stega.settings")
with refusing_clearly(WEB_REFUSES):
    application = get_wsgi_application()
    require_web()
    end_statements_of_web()
    share_settings_of_web()

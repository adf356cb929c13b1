"""The web process: `gunicorn stega.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

from stega.processes.startup import refusing_clearly
from stega.web import startup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "stega.settings")
with refusing_clearly(startup.REFUSES):
    application = get_wsgi_application()
    startup.require_servable()
    startup.end_statements()
    startup.share_settings()

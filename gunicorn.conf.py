"""What gunicorn itself says in the log, in the form that STEGA_LOG_FORMAT asks for, and the threads kept for probes.

The command line rules over it.
"""

from typing import Any

from stega import env

KEPT_THREADS = 2
"""Of each worker's `--threads`: they answer probes while all the others wait for a database that hangs."""


def post_worker_init(worker: Any) -> None:
    from stega.web.door import hall  # needs the settings, which the application has set up by now

    hall.places = max(1, worker.cfg.threads - KEPT_THREADS)


if env.choice("STEGA_LOG_FORMAT", "line", ("line", "json")) == "json":
    logconfig_dict = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "stega.logs.Json"}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["console"], "level": "INFO"},
        "loggers": {
            name: {"handlers": [], "propagate": True, "level": "INFO", "qualname": name}
            for name in ("gunicorn.error", "gunicorn.access")
        },
    }

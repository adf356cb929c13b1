"""What gunicorn itself says in the log, in the form that STEGA_LOG_FORMAT asks for. The command line rules over it."""

from stega import env

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

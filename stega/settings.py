"""Settings of Stega: one file, read from the environment through `stega.env` only. README.md lists every variable."""

import warnings
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from stega import env
from stega.database import vanishing

# Paths
BASE_DIR = Path(__file__).resolve().parent.parent
STEGA_DATA_DIR = BASE_DIR / ".stega"  # embedded databases, captured mail; never in production

# Core
DEBUG = env.boolean("STEGA_DEBUG", False)
SECRET_KEY = env.secret("STEGA_SECRET_KEY", development="development-only-not-a-secret", debug=DEBUG)
SECRET_KEY_FALLBACKS = env.items("STEGA_SECRET_KEY_FALLBACKS")  # former keys, still accepted for sessions and links
_base = env.web_address("STEGA_BASE_URL", "http://127.0.0.1:8000")
STEGA_BASE_URL = f"{_base.scheme}://{_base.netloc}"  # where people reach the site
ALLOWED_HOSTS = env.items("STEGA_ALLOWED_HOSTS") or [
    str(_base.hostname),
    *(["localhost", "127.0.0.1"] if DEBUG else []),
]
CSRF_TRUSTED_ORIGINS = [STEGA_BASE_URL]
ROOT_URLCONF = "stega.urls"
WSGI_APPLICATION = "stega.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEST_RUNNER = "django.test.runner.DiscoverRunner"

# Apps
INSTALLED_APPS = [
    "stega",
    "accounts",
    "tickets",
    "notifications",
    "operations",
    "django_q",
    "django_htmx",
    "stega.web.admin_site.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
AUDIENCE = "tickets.audience"  # the module that answers `stega.audience`: whom a ticket concerns

# Middleware
MIDDLEWARE = [
    "stega.web.middleware.NameRequest",
    "operations.probes.Probes",
    "stega.web.middleware.RefuseWhatIsNoText",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "stega.web.middleware.StoreNothing",
    "stega.web.door.Door",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "accounts.middleware.UserPreferencesMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
_https = _base.scheme == "https"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = _https
if DEBUG:  # cookies know no ports: two checkouts on one machine would sign each other out
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"sessionid_{_base.port}", f"csrftoken_{_base.port}"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
SECURE_HSTS_SECONDS = 31_536_000 if _https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _https
STEGA_BEHIND_PROXY = env.boolean("STEGA_BEHIND_PROXY", False)
if STEGA_BEHIND_PROXY:  # trust X-Forwarded-Proto: only behind a proxy that always sets it
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# Templates
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# Databases
_ALIASES = {"default": "DATABASE_URL", "jobs": "JOBS_DATABASE_URL", "events": "EVENTS_DATABASE_URL"}


def _databases() -> dict[str, dict[str, Any]]:
    """The three databases of the environment; the embedded ones when none is named and STEGA_DEBUG=1."""
    named = {alias: env.database(variable) for alias, variable in _ALIASES.items()}
    if DEBUG and not any(named.values()):
        from stega import embedded

        named = {alias: env.parse_database(alias, url) for alias, url in embedded.urls(BASE_DIR).items()}
    missing = [_ALIASES[alias] for alias, database in named.items() if database is None]
    if missing:
        raise ImproperlyConfigured(
            f"{', '.join(missing)}: not set. Stega needs three PostgreSQL databases: set "
            "DATABASE_URL, JOBS_DATABASE_URL and EVENTS_DATABASE_URL. (To try Stega on this machine: make run.)"
        )
    return {alias: _connection(database) for alias, database in named.items() if database is not None}


def _connection(database: dict[str, Any]) -> dict[str, Any]:
    """A persistent connection, checked before use (stega.database), that needs no session beyond a transaction."""
    options = {"application_name": "stega", "connect_timeout": 3, **vanishing.OF_CLIENT} | database.get("OPTIONS", {})
    apart: dict[str, list[str]] = {
        "DEPENDENCIES": []
    }  # each test database is made by itself, whichever of them a test run needs
    return database | {
        "ENGINE": "stega.database",
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "OPTIONS": options,
        "TEST": apart,
    }


DATABASES = _databases()
STEGA_REQUEST_DATABASE_SECONDS = env.seconds("STEGA_REQUEST_DATABASE_SECONDS", 10.0)  # that a request waits for them
DATABASE_ROUTERS = ["stega.database.routers.HomeRouter"]

# Tasks
TASKS = {  # name in the outbox -> function; the name stays when a function moves
    "send_welcome_notification": "accounts.tasks.send_welcome_notification",
    "publish_ticket_created": "tickets.tasks.publish_ticket_created",
    "publish_ticket_assigned": "tickets.tasks.publish_ticket_assigned",
    "publish_ticket_status_changed": "tickets.tasks.publish_ticket_status_changed",
    "publish_ticket_comment_added": "tickets.tasks.publish_ticket_comment_added",
    "publish_ticket_resolved": "tickets.tasks.publish_ticket_resolved",
    "publish_sla_breached": "tickets.tasks.publish_sla_breached",
    "publish_weekly_report": "tickets.tasks.publish_weekly_report",
    "perform_operator_action": "operations.tasks.perform_operator_action",
}
TASK_MAX_ATTEMPTS = env.integer("TASK_MAX_ATTEMPTS", 5, minimum=1)  # runs of a task that fails by a fault of its own
OUTBOX_FAST_PATH_SECONDS = env.seconds("OUTBOX_FAST_PATH_SECONDS", 1.0)  # what a hanging `jobs` may cost one request
OUTBOX_REST_SECONDS = env.seconds("OUTBOX_REST_SECONDS", 10.0)  # how long the fast path rests after such a failure
OUTBOX_SWEEP_AFTER_SECONDS = env.seconds("OUTBOX_SWEEP_AFTER_SECONDS", 10.0)  # age at which the sweep takes an entry
OUTBOX_LOST_AFTER_SECONDS = env.seconds("OUTBOX_LOST_AFTER_SECONDS", 900.0)  # relayed but not done: relay it again
SCHEDULER_SECONDS = env.seconds("SCHEDULER_SECONDS", 30.0)  # between a cluster's looks for schedules that are due
warnings.filterwarnings("ignore", "Retry and timeout are misconfigured", UserWarning)  # stega.E003 says what to do
Q_CLUSTER: dict[str, Any] = {
    "name": "stega",
    "label": "django-q2",
    "orm": "jobs",
    "broker_class": "stega.tasks.broker.Broker",
    "workers": env.integer("TASK_WORKERS", 2, minimum=1),
    "timeout": env.integer("TASK_TIMEOUT_SECONDS", 40, minimum=1),
    "retry": env.integer("TASK_RETRY_SECONDS", 60, minimum=1),  # longer than the timeout: stega.E003
    "max_attempts": 0,  # outages are retried without end; stega.outbox.perform bounds a task's own faults
    "ack_failures": False,
    "catch_up": False,
    "poll": 0.1,
    "scheduler": False,  # stega.tasks.cluster looks at the schedules, each SCHEDULER_SECONDS
    "bulk": 10,
    "save_limit": 0,  # keep every result: stega.results.prune deletes the old ones
}
TASK_STEP_SECONDS = Q_CLUSTER["timeout"] / 2  # then a task with more to do leaves the rest to another

# Event log
PGQUE_QUEUE = "stega.notifications"
PGQUE_ENGINE = env.choice("PGQUE_ENGINE", "builtin", ("builtin", "upstream"))  # which SQL the bootstrap installs
PGQUE_REPOSITORY = env.text("PGQUE_REPOSITORY", "https://github.com/NikolayS/PgQue.git")  # for pgque_vendor alone
EVENTS_DIRECT_DATABASE = env.database("EVENTS_LISTEN_DATABASE_URL")  # the same database past a pooler: LISTEN, locks
EVENTS_POOLED = env.boolean("EVENTS_POOLED", EVENTS_DIRECT_DATABASE is not None)  # EVENTS_DATABASE_URL is a pooler
PGQUE_MAX_RETRIES = env.integer("PGQUE_MAX_RETRIES", 30)  # deliveries after the first; pgque_bootstrap sets it
PGQUE_ROTATION_SECONDS = env.seconds("PGQUE_ROTATION_SECONDS", 7200.0)  # how long a table takes events before the next

# Processes
STEGA_RUN_DIR = env.text("STEGA_RUN_DIR", str(STEGA_DATA_DIR / "run"))  # heartbeats of the processes of this machine
HEALTHY_SECONDS = env.seconds("HEALTHY_SECONDS", 30.0)  # without a good step, then a process is not well
PGQUE_TICK_SECONDS = env.seconds("PGQUE_TICK_SECONDS", 0.015)  # between ticks while events flow
PGQUE_IDLE_TICK_SECONDS = env.seconds("PGQUE_IDLE_TICK_SECONDS", 0.1)  # between looks at idle queues
PGQUE_RETRY_SECONDS = env.seconds("PGQUE_RETRY_SECONDS", 1.0)  # between moves of due retries
PGQUE_MAINTENANCE_SECONDS = env.seconds("PGQUE_MAINTENANCE_SECONDS", 30.0)  # between rotations, step 1
PGQUE_ROTATE_SECONDS = env.seconds("PGQUE_ROTATE_SECONDS", 10.0)  # between rotations, step 2
PGQUE_SILENT_MEMBER_SECONDS = env.seconds("PGQUE_SILENT_MEMBER_SECONDS", 3600.0)  # then a group's member is removed
STANDBY_SECONDS = env.seconds("STANDBY_SECONDS", 0.5)  # between a stand-by's tries to lead
CONSUMER_POLL_SECONDS = env.seconds("CONSUMER_POLL_SECONDS", 1.0)  # between looks at an idle queue; NOTIFY comes first
CONSUMER_PAGE_SIZE = env.integer("CONSUMER_PAGE_SIZE", 500, minimum=1)  # events of a batch held in memory at once
SLA_DEAD_INTERVAL_SECONDS = env.seconds("SLA_DEAD_INTERVAL_SECONDS", 120.0)  # silence that costs a member its batch
HANDLER_PATIENCE_SECONDS = env.seconds("HANDLER_PATIENCE_SECONDS", 600.0)  # in one message, then a member falls silent
DELIVERY_LEASE_SECONDS = env.seconds("DELIVERY_LEASE_SECONDS", 15.0)  # a try's claim; a send is cut at half of it
DELIVERY_MAX_AGE_SECONDS = env.seconds("DELIVERY_MAX_AGE_SECONDS", 259_200.0)  # when a notice is given up: 3 days
UNCERTAIN_PAUSE_SECONDS = env.seconds("UNCERTAIN_PAUSE_SECONDS", 60.0)  # before a second try of what may have arrived
CIRCUIT_FAILURES = env.integer("CIRCUIT_FAILURES", 3, minimum=1)  # temporary failures in a row that open a circuit
CIRCUIT_PAUSE_SECONDS = env.seconds("CIRCUIT_PAUSE_SECONDS", 5.0)  # before the first probe; doubles with each failure
CIRCUIT_LONGEST_PAUSE_SECONDS = env.seconds("CIRCUIT_LONGEST_PAUSE_SECONDS", 120.0)  # between probes at most

# Operations: who may look, and what counts as a problem
STEGA_METRICS_TOKEN = env.text("STEGA_METRICS_TOKEN")  # a scrape of /metrics brings it; without one: this machine only
FACTS_SECONDS = env.seconds("FACTS_SECONDS", 0.9)  # what asking all databases for facts may take; 0 in tests: no limit
TICKER_DEAD_SECONDS = env.seconds("TICKER_DEAD_SECONDS", 10.0)  # silence of the ticker
WORKER_BEHIND_SECONDS = env.seconds("WORKER_BEHIND_SECONDS", 60.0)  # how long events may wait for a consumer
OUTBOX_STUCK_SECONDS = env.seconds("OUTBOX_STUCK_SECONDS", 180.0)  # age of an entry that is not done
ACTION_STUCK_SECONDS = env.seconds("ACTION_STUCK_SECONDS", 300.0)  # how long nothing may come of an operator's action
CLUSTER_STUCK_SECONDS = env.seconds("CLUSTER_STUCK_SECONDS", 60.0)  # how long a due task may wait for a cluster
SCHEDULE_LATE_SECONDS = env.seconds("SCHEDULE_LATE_SECONDS", 300.0)  # how long a schedule may be overdue
DEAD_LETTER_ALERT_SECONDS = env.seconds("DEAD_LETTER_ALERT_SECONDS", 86_400.0)  # how long a dead letter is news
OLD_TRANSACTION_SECONDS = env.seconds("OLD_TRANSACTION_SECONDS", 600.0)  # age of a transaction that holds things up
CLOCK_SKEW_SECONDS = env.seconds("CLOCK_SKEW_SECONDS", 5.0)  # between this host's clock and a database's

# Authentication
AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "accounts:login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Languages and time
LANGUAGES = [("en", "English"), ("pt-br", "Português")]  # each in its own language
LANGUAGE_CODE = env.choice("STEGA_LANGUAGE", "en", ("en", "pt-br"))  # when neither the user nor the browser says
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_TZ = True
TIME_ZONE = env.time_zone("STEGA_TIME_ZONE", "UTC")  # of the weekly report and of users who chose none

# Static files
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = DEBUG
if not DEBUG:
    STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }

# Mail
STEGA_DEV_INBOX = DEBUG  # /dev/inbox/: captured mail and Slack posts, open to everybody
EMAIL_HOST = env.text("EMAIL_HOST")
EMAIL_BACKEND = f"notifications.{'channels.smtp.EmailBackend' if EMAIL_HOST else 'inbox.FileMailBackend'}"
EMAIL_PORT = env.integer("EMAIL_PORT", 25, minimum=1, maximum=65_535)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env.boolean("EMAIL_USE_TLS", False)  # STARTTLS
EMAIL_USE_SSL = env.boolean("EMAIL_USE_SSL", False)  # TLS from the first byte
if EMAIL_USE_TLS and EMAIL_USE_SSL:
    raise ImproperlyConfigured("EMAIL_USE_TLS and EMAIL_USE_SSL exclude each other: set one of them to 0.")
EMAIL_TIMEOUT = env.seconds("EMAIL_TIMEOUT", 5.0)  # per network step
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.mail_address("DEFAULT_FROM_EMAIL", "Stega <stega@localhost>")
SLACK_TIMEOUT_SECONDS = env.integer("SLACK_TIMEOUT_SECONDS", 5, minimum=1)
SLACK_PACE_SECONDS = env.seconds("SLACK_PACE_SECONDS", 1.0)  # between two posts to one webhook: Slack's own limit

# Logging
STEGA_LOG_FORMAT = env.choice("STEGA_LOG_FORMAT", "line", ("line", "json"))  # gunicorn.conf.py reads it too
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "stega.logs.Line"}, "json": {"()": "stega.logs.Json"}},
    "filters": {"one_line": {"()": "stega.logs.OneLine"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": STEGA_LOG_FORMAT, "filters": ["one_line"]}},
    "root": {"handlers": ["console"], "level": env.choice("STEGA_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING"))},
    "loggers": {name: {"handlers": [], "propagate": True} for name in ("django", "django.server", "django-q")},
}

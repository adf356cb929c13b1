# The targets of Stega: `make` lists them. Everything runs in .venv, which is made and kept current on the way.

PORT ?= 8000
ENGINE ?= builtin
PYTEST_ARGUMENTS ?= -n 2 --dist loadgroup
PYTHON3 ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
PYTHON = .venv/bin/python
VENV = .venv/stega-installed
VENV_BROWSER = .venv/stega-browser-installed

.PHONY: help install run test test-engine test-pooler test-browser check check-rules bench bench-console bench-engine soak-engine chaos fmt build-sql messages clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(VENV) ## make .venv with everything in it; the other targets do it on their own

run: $(VENV) ## run all of Stega on this machine; PORT=8123 takes another port
	@exec env STEGA_DEBUG="$${STEGA_DEBUG-1}" $(PYTHON) manage.py up --port "$(PORT)"

test: $(VENV) ## run every test, on PostgreSQL servers of its own; ENGINE=upstream: the application's, on upstream's PgQue
	@test "$(ENGINE)" != upstream || test -e vendor/pgque/upstream/pgque.sql || \
		{ echo "vendor/pgque/upstream is empty: fetch a tag first (README.md, For developers)" >&2; exit 1; }
	@exec env PGQUE_ENGINE="$(ENGINE)" $(PYTHON) -m pytest $(PYTEST_ARGUMENTS) $(if $(filter upstream,$(ENGINE)),-m "not engine")

test-engine: $(VENV) ## run the tests of the event log engine; POSTGRES=/path/to/bin: on PostgreSQL of another version
	@test -z "$(POSTGRES)" || test -x "$(POSTGRES)/postgres" || \
		{ echo "POSTGRES=$(POSTGRES) is no folder with initdb and postgres in it" >&2; exit 1; }
	@exec env STEGA_TEST_POSTGRES="$(POSTGRES)" $(PYTHON) -m pytest $(PYTEST_ARGUMENTS) tests/pgque

test-pooler: $(VENV) ## run every process behind a real PgBouncer, which must be installed: restarts, pauses, fail-overs
	@exec $(PYTHON) -m pytest $(PYTEST_ARGUMENTS) tests/processes/pooler

test-browser: $(VENV_BROWSER) ## run the tests that look at the pages with Chromium; SCREENSHOTS=/path/to/folder keeps what they saw
	@exec env SCREENSHOTS="$(SCREENSHOTS)" $(PYTHON) -m pytest $(PYTEST_ARGUMENTS) tests/browser

check: $(VENV) ## formatting, lint, types, import contracts, migrations, settings, built SQL, tests
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m ruff check .
	@STEGA_DEBUG=1 $(PYTHON) -m mypy
	@.venv/bin/lint-imports
	@STEGA_DEBUG=1 $(PYTHON) manage.py makemigrations --check --dry-run
	@STEGA_DEBUG=1 $(PYTHON) manage.py check --fail-level WARNING
	@$(PYTHON) vendor/pgque/build.py --check
	@$(PYTHON) -m pytest $(PYTEST_ARGUMENTS)

check-rules: ## check the alert rules with promtool: when they fire, and when they are quiet again
	@command -v promtool >/dev/null || \
		{ echo "promtool is not installed: it comes with Prometheus (Debian: apt-get install prometheus)" >&2; exit 1; }
	@promtool check rules deploy/prometheus/alerts.yml
	@promtool test rules tests/operations/alerts.promtool.yml

bench: $(VENV) ## measure latency, throughput, the cost of enqueueing, memory, mails per second and the SLA scan
	@exec $(PYTHON) -m tests.bench

bench-engine: $(VENV) ## measure the event log engine beside raw SQL; BENCH_ARGUMENTS=--quick for a first look
	@exec $(PYTHON) -m tests.bench.engine $(BENCH_ARGUMENTS)

bench-console: $(VENV) ## measure the queries of the console's pages; ROWS=100000 for fewer than a million rows
	@exec env CONSOLE_ROWS="$(or $(ROWS),1000000)" $(PYTHON) -m pytest -q -s -p no:randomly tests/operations/test_console_plans.py

soak-engine: $(VENV) ## run the event log engine beside an old transaction; SECONDS_OF_SOAK=60 for less than 10 minutes
	@exec $(PYTHON) -m tests.bench.soak $(SECONDS_OF_SOAK)

chaos: $(VENV) ## kill processes and restart databases while events flow, and count what is lost; faults for SECONDS_OF_CHAOS=180, and until all is told
	@exec $(PYTHON) -m tests.chaos

fmt: $(VENV) ## format the code and repair what the linter can
	@$(PYTHON) -m ruff check --fix .
	@$(PYTHON) -m ruff format .

build-sql: $(VENV) ## build vendor/pgque/pgque.sql from its sources
	@$(PYTHON) vendor/pgque/build.py

messages: $(VENV) ## bring the translations up to date with the code and compile them
	@STEGA_DEBUG=1 $(PYTHON) manage.py messages

clean: ## remove the virtual environment and every cache; the data in .stega stays
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache staticfiles
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Where the system's Python comes without ensurepip, its own pip fills the environment.
define fill-venv
	if $(PYTHON) -c 'import pip' 2>/dev/null; then pip="$(PYTHON) -m pip"; else pip="$(PYTHON3) -m pip --python $(PYTHON)"; fi; \
		$$pip install --disable-pip-version-check --progress-bar off -r $(1)
endef

$(VENV): requirements.txt requirements-dev.txt
	@test -n "$(PYTHON3)" || { echo "Stega needs Python 3.11 or newer: install it, or name it: make PYTHON3=/path/to/python3" >&2; exit 1; }
	@test -x $(PYTHON) || { echo "Making .venv"; \
		$(PYTHON3) -c 'import ensurepip' 2>/dev/null && $(PYTHON3) -m venv .venv || $(PYTHON3) -m venv --without-pip .venv; }
	@echo "Installing the packages of requirements-dev.txt (about a minute the first time)"
	@$(call fill-venv,requirements-dev.txt)
	@touch $@

$(VENV_BROWSER): $(VENV) requirements-browser.txt
	@echo "Installing the packages of requirements-browser.txt"
	@$(call fill-venv,requirements-browser.txt)
	@touch $@

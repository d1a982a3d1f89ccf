# make run | explorer | test | check | bench | docs: each sets up what it needs in .venv first.
SHELL := /bin/bash
PYTHON ?= $(shell .ci/python 2>/dev/null)
# Whoever names a Python gets an environment for it, beside the usual one.
ifeq ($(origin PYTHON), command line)
VENV ?= .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
endif
VENV ?= .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
PORT ?= 8000
WORKERS ?= auto

.PHONY: run explorer test test-covered test-long ecosystem check format lint types imports bench docs pins ui release clean

# What running needs.
$(RUNS): pyproject.toml requirements/run.txt requirements/bootstrap.txt
	@.ci/python $(PYTHON) >/dev/null
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements/bootstrap.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/run.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

# And what testing, checking and building the documentation need.
$(READY): $(RUNS) requirements/dev.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@touch $@

run: $(RUNS)
	$(BIN)/toolgrove demo --port $(PORT)

explorer: $(RUNS)
	$(BIN)/apcore-mcp --extensions-dir examples/extensions --transport streamable-http --port $(PORT) \
		--explorer --allow-execute --name toolgrove-samples

test: test-covered test-long

test-covered: $(READY)
	$(BIN)/python -m pytest --cov --cov-report=term -n $(WORKERS) --dist worksteal -m "not ecosystem and not long"

# What computes for many seconds, without the tracing that would double that.
test-long: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m long

# Real servers behind a gateway and real clients before it, each in an environment of its own.
ecosystem: $(READY)
	tools/ecosystem.sh
	CI=true $(BIN)/python -m pytest -n $(WORKERS) -m ecosystem tests/ecosystem
	$(BIN)/python tools/ecosystem_digest.py --write

# All that CI checks, by what CI runs.
check:
	.ci/run

format: $(READY)
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy
	$(BIN)/mypy examples
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 src

imports: $(READY)
	$(BIN)/lint-imports --no-cache

bench: $(READY)
	$(BIN)/python -m bench.startup
	$(BIN)/python -m bench.lane
	$(BIN)/python -m bench.bridge
	$(BIN)/python -m bench.tree --calls
	$(BIN)/python -m bench.store
	$(BIN)/python -m bench.long_calls
	$(BIN)/python -m bench.economy

docs: $(READY)
	$(BIN)/python tools/conformance.py
	$(BIN)/python tools/tree_reference.py
	$(BIN)/python tools/config_reference.py
	$(BIN)/python tools/http_reference.py
	$(BIN)/python tools/console_types.py
	$(BIN)/python tools/cli_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The newest versions that the ranges in pyproject.toml allow, with hashes and without addresses.
COMPILE = $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	--no-emit-index-url --no-emit-find-links
pins: $(READY)
	$(COMPILE) --upgrade pyproject.toml requirements/build.in --all-extras --group test --group check --group docs --group release \
		-o requirements/dev.txt
	$(COMPILE) pyproject.toml requirements/build.in -c requirements/dev.txt -o requirements/run.txt
	echo uv | $(COMPILE) --upgrade - -o requirements/bootstrap.txt

ui:
	cd ui && npm ci --no-audit --no-fund && npm run build
	cp ui/dist/explorer.html src/apcore_mcp/explorer/explorer.html
	python3 tools/explorer_policy.py ui/dist/explorer.html > src/apcore_mcp/explorer/explorer.csp
	cp ui/dist/console.html src/toolgrove/web/console.html
	python3 tools/explorer_policy.py ui/dist/console.html > src/toolgrove/web/console.csp

# What is published, built and checked: docs/releasing.md.
release: $(READY)
	tools/release.sh dist

clean:
	rm -rf .venv .venv-* site dist .coverage* .pytest_cache .mypy_cache .ruff_cache

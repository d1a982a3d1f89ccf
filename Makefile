# make run | explorer | test | check | bench | docs: each sets up what it needs in .venv first.
SHELL := /bin/bash
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PORT ?= 8000

.PHONY: run explorer test check format lint types imports bench docs pins ui clean

$(READY): pyproject.toml requirements/dev.txt requirements/bootstrap.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements/bootstrap.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

run: $(READY)
	$(BIN)/toolgrove demo --port $(PORT)

explorer: $(READY)
	$(BIN)/apcore-mcp --extensions-dir examples/extensions --transport streamable-http --port $(PORT) \
		--explorer --allow-execute --name toolgrove-samples

test: $(READY)
	$(BIN)/python -m pytest --cov --cov-report=term

format lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports --no-cache

check: lint types imports docs test
	$(BIN)/python tools/conformance.py --check

bench: $(READY)
	$(BIN)/python -m bench.bridge
	$(BIN)/python -m bench.tree --calls
	$(BIN)/python -m bench.store

docs: $(READY)
	$(BIN)/python tools/conformance.py
	$(BIN)/python tools/tree_reference.py
	$(BIN)/python tools/config_reference.py
	$(BIN)/python tools/http_reference.py
	$(BIN)/python tools/cli_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The newest versions that the ranges in pyproject.toml allow, with hashes and without addresses.
pins: $(READY)
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		--no-emit-index-url --no-emit-find-links --upgrade pyproject.toml requirements/build.in --all-extras \
		--group test --group check --group docs -o requirements/dev.txt
	echo uv | $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate \
		--no-header --no-emit-index-url --no-emit-find-links --upgrade - -o requirements/bootstrap.txt

ui:
	cd ui && npm ci --no-audit --no-fund && npm run build
	cp ui/dist/explorer.html src/apcore_mcp/explorer/explorer.html
	python3 tools/explorer_policy.py ui/dist/explorer.html > src/apcore_mcp/explorer/explorer.csp
	cp ui/dist/console.html src/toolgrove/web/console.html
	python3 tools/explorer_policy.py ui/dist/console.html > src/toolgrove/web/console.csp

clean:
	rm -rf $(VENV) site .coverage* .pytest_cache .mypy_cache .ruff_cache

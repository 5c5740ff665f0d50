# Tidegate. `make` alone prints the targets.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Random order has a seed, so that a failure can be run again: make test SEED=1234
SEED ?=
PYTEST := $(BIN)/python -m pytest $(if $(SEED),--randomly-seed=$(SEED))

.DEFAULT_GOAL := help
.PHONY: help setup demo up test test-all check format generate bench faults long lock clean

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with the locked packages and Tidegate itself

$(READY): requirements/lock.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Tidegate needs Python 3.11 or later; $(PYTHON) is older. Try: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

up: setup ## run a worker, beat and exporter with the tidegate.toml here; without one, with the defaults
	$(BIN)/tidegate up

demo: setup ## a fleet under load for half a minute, on a server of its own; says what happened
	$(BIN)/tidegate demo

test: setup ## the tests of a few minutes
	$(PYTEST) -n 2 -m "not slow and not redis and not faults and not bench and not long"

test-all: setup ## also the slow ones, and those that need a Redis server of the distribution
	$(PYTEST) -n 2 -m "not faults and not bench and not long"

check: setup ## format, lint, types, import contracts, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy app beat
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python tools/generate.py --check

format: setup ## put every file in form, and repair what lint can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: setup ## write the generated files again
	$(BIN)/python tools/generate.py

faults: setup ## kills, freezes and cuts
	$(PYTEST) -m faults

bench: setup ## measure against stock Celery on this machine
	$(PYTEST) -m bench -s

long: setup ## what takes many minutes
	$(PYTEST) -m long

lock: ## resolve requirements/lock.txt again (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header --no-emit-index-url \
		--no-emit-find-links --extra dev --extra bench pyproject.toml requirements/build.in -o requirements/lock.txt

clean: ## remove what make and the tools made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

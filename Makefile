# Everything runs from here on a machine that has Python 3.11 or later and nothing else. `make check` is CI.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest -n 2 -q

export PYTHONUTF8 := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-all check lint types imports siege campaign readme bench prove lock clean

help:  ## what can be made
	@sed -nE 's/^([a-z-]+):.*  ## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

venv: $(READY)  ## the environment in .venv, with every hash checked

$(READY): requirements/dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed: put it on PATH or say make PYTHON=…" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: $(READY)  ## see it work
	$(BIN)/tarry demo

test: $(READY)  ## all tests but the long ones
	$(PYTEST) -m "not long"

test-all: $(READY)  ## the fast tests under each Python that this machine has
	$(BIN)/python .ci/pythons.py

check: lint types imports test siege readme  ## what CI runs
	$(BIN)/python .ci/pythons.py --skip-own --within 240 tests/core tests/store tests/engine

lint: $(READY)  ## format and style
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: $(READY)  ## pyright, strict
	$(BIN)/pyright

imports: $(READY)  ## the rooms and who may know whom
	$(BIN)/lint-imports --no-logo

SIEGE := --runs 300 --kills 40 --stops 2
siege: $(READY)  ## real processes, killed -9
	$(BIN)/python -m tests.faults.siege .siege $(SIEGE) --patience 150
	rm -rf .siege

campaign: $(READY)  ## short campaigns of faults
	$(if $(wildcard tests/campaign tests/campaign.py),$(BIN)/python -m tests.campaign --short)

readme: $(READY)  ## the README's blocks, word for word, against the built wheel
	$(if $(wildcard tests/house/readme_run.py),$(BIN)/python tests/house/readme_run.py)

bench: $(READY)  ## the loads, for Tarry and its rivals
	$(BIN)/python -m bench $(BENCH)

prove: $(READY)  ## the long tests and campaigns
	$(MAKE) siege SIEGE="--runs 2000 --kills 300 --stops 20"
	$(PYTEST) -m long --timeout 3600
	$(BIN)/python -m tests.campaign

lock: $(READY)  ## requirements/*.txt anew from pyproject.toml
	$(BIN)/python .ci/lock.py

clean:  ## what was made, environments too
	rm -rf .siege $(VENV) .venvs .bench-venv build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
